import Foundation
import Larkspur
import Testing

/// Tests a protocol that delivers content before the response that it belongs to.
@Suite struct LateResponseTests {
  private func script() throws -> ScriptedProtocol.Script {
    try ScriptedProtocol.script {
      $0.load("con")
      $0.respond(404, ["X-One": "1"], policy: .allowed)
      $0.load("tent")
      $0.respond(500)
      $0.finish()
    }
  }

  private func status(_ response: URLResponse?) -> Int? { (response as? HTTPURLResponse)?.statusCode }

  private func text(_ data: Data?) -> String? { data.map { String(decoding: $0, as: UTF8.self) } }

  @Test func aHandlerGetsAllThree() async throws {
    let script = try script()
    let configuration = script.configuration()
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration)
    var request = URLRequest(url: script.url)
    for isUpload in [false, true] {
      if isUpload { request.httpMethod = "POST" }
      let (data, response, error): (Data?, URLResponse?, (any Error)?) = await withCheckedContinuation { continuation in
        let done: @Sendable (Data?, URLResponse?, (any Error)?) -> Void = {
          continuation.resume(returning: ($0, $1, $2))
        }
        let task =
          isUpload
          ? session.uploadTask(with: request, from: Data([1]), completionHandler: done)
          : session.dataTask(with: request, completionHandler: done)
        task.resume()
      }
      #expect(text(data) == "content" && status(response) == 404 && error == nil)
    }
    // The first content arrived before the response, so the body is incomplete for the cache, which stores nothing.
    #expect(cache.cachedResponse(for: URLRequest(url: script.url)) == nil)
  }

  @Test func aDownloadsHandlerToo() async throws {
    let script = try script()
    let (content, response): (String?, URLResponse?) = await withCheckedContinuation { continuation in
      script.session().downloadTask(with: script.url) { url, response, _ in
        continuation.resume(returning: (url.flatMap { try? String(contentsOf: $0, encoding: .utf8) }, response))
      }.resume()
    }
    #expect(content == "content" && status(response) == 404)
  }

  @Test func aDelegateHearsOfItWhenItComes() async throws {
    let script = try script()
    let delegate = RecordingDelegate()
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["data con", "response 404", "data tent", "metrics 1", "end"])
    #expect(status(task.response) == 404 && task.countOfBytesReceived == 7)
  }

  @Test func aDelegateMayCancelThen() async throws {
    let script = try script()
    let delegate = RecordingDelegate(disposition: .cancel)
    script.session(delegate).dataTask(with: script.url).resume()
    await delegate.wait()
    #expect(delegate.events.prefix(2) == ["data con", "response 404"] && delegate.events.last == "failure")
  }

  @Test func aDownloadsDelegateGetsAllOfTheFile() async throws {
    let script = try script()
    let delegate = RecordingDelegate()
    let task = script.session(delegate).downloadTask(with: script.url)
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["file content", "metrics 1", "end"] && status(task.response) == 404)
  }

  @Test func asyncFunctionsReturnIt() async throws {
    let script = try script()
    let session = script.session()
    let (data, response) = try await session.data(from: script.url)
    #expect(text(data) == "content" && status(response) == 404)
    let (file, other) = try await session.download(from: script.url)
    #expect(try String(contentsOf: file, encoding: .utf8) == "content" && status(other) == 404)
    try FileManager.default.removeItem(at: file)
  }

  @Test func aReaderOfBytesGetsItFirst() async throws {
    let script = try script()
    let (bytes, response) = try await script.session().bytes(from: script.url)
    #expect(status(response) == 404)
    var all: [UInt8] = []
    for try await byte in bytes { all.append(byte) }
    #expect(all == Array("content".utf8))
  }

  @Test func aReaderOfBytesGetsOneIfThereIsNone() async throws {
    let script = try ScriptedProtocol.script {
      $0.load("content")
      $0.finish()
    }
    let (bytes, response) = try await script.session().bytes(from: script.url)
    #expect(response.url == script.url)
    var count = 0
    for try await _ in bytes { count += 1 }
    #expect(count == 7)
  }

  /// A reader of bytes gets a substitute response once a protocol has sent more content than is buffered without one,
  /// so the reader does not wait and memory stays bounded.
  @Test func aReaderOfBytesDoesNotWaitForever() async throws {
    let piece = String(repeating: "x", count: 64 * 1024)
    let script = try ScriptedProtocol.script {
      $0.load(piece); $0.load("more")
    }
    let (bytes, response) = try await script.session().bytes(from: script.url)
    #expect(response.url == script.url && !(response is HTTPURLResponse))
    var count = 0
    for try await _ in bytes {
      count += 1
      if count == piece.utf8.count + 4 { break }
    }
    #expect(count == piece.utf8.count + 4)
  }
}
