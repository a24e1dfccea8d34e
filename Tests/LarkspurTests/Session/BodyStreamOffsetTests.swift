import Foundation
import LarkspurTestServer
import TestKit
import Testing

@testable import Larkspur

/// The delegate method for a body's stream from an offset, and which form is called.
@Suite(.timeLimit(.minutes(1))) struct BodyStreamOffsetTests {
  /// No delegate itself: the methods of a subclass count only if the subclass declares the conformance.
  private class Base: NSObject, @unchecked Sendable {
    let offsets = Event()
    let ended = Event()

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      ended.fire()
    }
  }

  /// A class of its own, because what a class lacks is remembered.
  private final class FromOffset: Base, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
      completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
      if offset == 0 { offsets.fire() }
      completionHandler(InputStream(data: Data("from an offset".utf8)))
    }
  }

  private final class AsyncFromOffset: Base, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
    ) async -> InputStream? {
      if offset == 0 { offsets.fire() }
      return InputStream(data: Data("from an offset".utf8))
    }
  }

  private final class Both: Base, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) { completionHandler(InputStream(data: Data("from the start".utf8))) }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
      completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
      offsets.fire()
      completionHandler(nil)
    }
  }

  private final class Neither: Base, URLSessionTaskDelegate, @unchecked Sendable {}

  private func upload(
    _ delegate: any Base & URLSessionTaskDelegate, own: FromOffset? = nil, to server: TestServer
  ) async throws -> (body: String?, error: URLError?) {
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try #require(URL(string: server.url("/post"))))
    request.httpMethod = "POST"
    let task = session.uploadTask(withStreamedRequest: request)
    task.delegate = own
    let count = server.requests.count
    task.resume()
    await Wait.until("the task ends") { delegate.ended.count + (own?.ended.count ?? 0) > 0 }
    return (server.requests.count > count ? server.requests.last?.bodyText : nil, task.error as? URLError)
  }

  @Test func theFormThatTheDelegateHas() async throws {
    let server = try TestServer()
    // The second delegate's class is known.
    for _ in 0..<2 {
      for delegate in [FromOffset(), AsyncFromOffset()] as [any Base & URLSessionTaskDelegate] {
        #expect(try await upload(delegate, to: server).body == "from an offset" && delegate.offsets.count == 1)
      }
    }
    let both = Both()
    #expect(try await upload(both, to: server).body == "from the start" && both.offsets.count == 0)
    for _ in 0..<2 {
      let outcome = try await upload(Neither(), to: server)
      #expect(outcome.body == nil && outcome.error?.code == .requestBodyStreamExhausted)
    }
  }

  /// A task's own delegate is asked before the session's, also in the form with an offset.
  @Test func theTasksDelegate() async throws {
    let server = try TestServer()
    #expect(try await upload(Both(), own: FromOffset(), to: server).body == "from an offset")
  }
}
