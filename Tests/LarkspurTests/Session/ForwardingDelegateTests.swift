import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// A delegate can forward its calls to another delegate. If the other has no such method, the answer of the first
/// counts.
@Suite struct ForwardingDelegateTests {
  /// A delegate that implements no method.
  private final class Silent: NSObject, URLSessionDataDelegate {}

  /// Forwards every call to a delegate that implements no method, and answers itself.
  private final class Forwarder: NSObject, URLSessionDataDelegate {
    private let other: any URLSessionDataDelegate = Silent()
    private let heard = Mutex<[String]>([])
    let ended: AsyncStream<[String]>
    private let end: AsyncStream<[String]>.Continuation
    let disposition: URLSession.ResponseDisposition

    init(disposition: URLSession.ResponseDisposition = .allow) {
      self.disposition = disposition
      (ended, end) = AsyncStream.makeStream()
    }

    private func note(_ word: String) { heard.withLock { $0.append(word) } }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      note("session challenge")
      other.urlSession(session, didReceive: challenge) { _, _ in }
      let credential = challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) }
      completionHandler(.useCredential, credential)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      note("challenge")
      other.urlSession(session, task: task, didReceive: challenge) { _, _ in }
      completionHandler(.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      note("redirection")
      other.urlSession(
        session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: { _ in })
      completionHandler(nil)
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      note("response")
      other.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: { _ in })
      completionHandler(disposition)
    }

    /// Answers twice, of which the first answer counts.
    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
      completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
      note("caching")
      completionHandler(nil)
      other.urlSession(
        session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      note(String(decoding: data, as: UTF8.self))
      other.urlSession(session, dataTask: dataTask, didReceive: data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      other.urlSession(session, task: task, didCompleteWithError: error)
      note(error == nil ? "end" : "\((error as? URLError)?.code.rawValue ?? 0)")
      end.yield(heard.withLock { $0 })
      end.finish()
    }

    func run(_ task: URLSessionTask) async -> [String] {
      task.resume()
      for await heard in ended { return heard }
      return []
    }
  }

  private func server() throws -> TestServer {
    let server = try TestServer()
    server.route("GET", "/hello") { _ in
      TestServer.Response(status: 200, fields: ["Cache-Control": "max-age=100"], body: .bytes(Array("hello".utf8)))
    }
    server.route("GET", "/moved") { _ in
      TestServer.Response(status: 302, fields: ["Location": "/hello"], body: .bytes(Array("moved".utf8)))
    }
    server.route("GET", "/secret") { request in
      guard request.fields["authorization"] == "Basic dXNlcjpwYXNz" else {
        return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""])
      }
      return .text("come in")
    }
    return server
  }

  private func session(_ delegate: any URLSessionDelegate) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  }

  @Test func aResponseIsRefused() async throws {
    let server = try server()
    let delegate = Forwarder(disposition: .cancel)
    let url = try #require(URL(string: server.url("/hello")))
    #expect(await delegate.run(session(delegate).dataTask(with: url)) == ["response", "-999"])
  }

  @Test func aResponseIsNotStored() async throws {
    let server = try server()
    let delegate = Forwarder()
    let session = session(delegate)
    let url = try #require(URL(string: server.url("/hello")))
    #expect(await delegate.run(session.dataTask(with: url)) == ["response", "hello", "caching", "end"])
    #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: url)) == nil)
  }

  @Test func aRedirectionIsRefused() async throws {
    let server = try server()
    let delegate = Forwarder()
    let url = try #require(URL(string: server.url("/moved")))
    #expect(await delegate.run(session(delegate).dataTask(with: url)) == ["redirection", "response", "moved", "end"])
  }

  @Test func aChallengeIsAnswered() async throws {
    let server = try server()
    let delegate = Forwarder()
    let url = try #require(URL(string: server.url("/secret")))
    #expect(
      await delegate.run(session(delegate).dataTask(with: url)) == [
        "challenge", "response", "come in", "caching", "end",
      ])
  }

  @Test func aCertificateIsTrusted() async throws {
    let server = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    let delegate = Forwarder()
    let url = try #require(URL(string: server.url("/status/204")))
    #expect(
      await delegate.run(session(delegate).dataTask(with: url)) == ["session challenge", "response", "caching", "end"])
  }

  @Test func theSessionsDelegateDoesNotHearWhatTheTasksHasHeard() async throws {
    let server = try server()
    let sessions = SessionRecorder()
    let own = Forwarder()
    let task = session(sessions).dataTask(with: try #require(URL(string: server.url("/hello"))))
    task.delegate = own
    #expect(await own.run(task) == ["response", "hello", "caching", "end"])
    await sessions.wait { $0.contains(.metrics(task.taskIdentifier)) }
    #expect(!sessions.events.contains(.data(task.taskIdentifier)))
    #expect(!sessions.events.contains(.response(task.taskIdentifier, status: 200)))
  }
}
