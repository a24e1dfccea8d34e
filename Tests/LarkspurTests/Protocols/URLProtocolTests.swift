import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests loads by a program's own protocol, as mocks use them.
@Suite struct URLProtocolTests {
  private struct OwnError: Error, Equatable { var number: Int }

  private func text(_ data: Data?) -> String { String(decoding: data ?? Data(), as: UTF8.self) }

  // MARK: - Delivery

  @Test func anAsyncCallGetsWhatTheProtocolSays() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond(201, ["X-Own": "yes"])
      $0.load("hello")
      $0.finish()
    }
    let (data, response) = try await script.session().data(from: script.url)
    #expect(text(data) == "hello")
    let http = try #require(response as? HTTPURLResponse)
    #expect(http.statusCode == 201)
    #expect(http.value(forHTTPHeaderField: "x-own") == "yes")
    await script.wait(for: "stop")
    #expect(script.events == ["start", "stop"])
  }

  @Test func aHandlerGetsWhatTheProtocolSays() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond(404)
      $0.load("not ")
      $0.load("here")
      $0.finish()
    }
    let session = script.session()
    let (data, status, error): (Data?, Int?, (any Error)?) = await withCheckedContinuation { continuation in
      session.dataTask(with: script.url) { data, response, error in
        continuation.resume(returning: (data, (response as? HTTPURLResponse)?.statusCode, error))
      }.resume()
    }
    #expect(text(data) == "not here")
    #expect(status == 404)
    #expect(error == nil)
  }

  @Test func eachPieceIsDeliveredOnItsOwnAndInOrder() async throws {
    let script = try ScriptedProtocol.script { one in
      one.respond()
      for number in 0..<5 { one.load("\(number)") }
      one.load("")
      one.finish()
    }
    let delegate = RecordingDelegate()
    script.session(delegate).dataTask(with: script.url).resume()
    await delegate.wait()
    #expect(
      delegate.events == ["response 200", "data 0", "data 1", "data 2", "data 3", "data 4", "metrics 1", "end"])
  }

  /// A protocol may deliver no response. Neither the completion handler nor the delegate gets one then, as in
  /// Foundation.
  @Test(arguments: ["", "hello"]) func aProtocolMayDeliverNoResponse(content: String) async throws {
    let script = try ScriptedProtocol.script {
      if !content.isEmpty { $0.load(content) }
      $0.finish()
    }
    let session = script.session()
    let (data, response, error): (Data?, URLResponse?, (any Error)?) = await withCheckedContinuation { continuation in
      session.dataTask(with: script.url) { continuation.resume(returning: ($0, $1, $2)) }.resume()
    }
    #expect(text(data) == content && response == nil && error == nil)
    let delegate = RecordingDelegate()
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await delegate.wait()
    #expect(delegate.events == (content.isEmpty ? [] : ["data \(content)"]) + ["metrics 1", "end"])
    #expect(task.response == nil)
    let file: Data? = await withCheckedContinuation { continuation in
      session.downloadTask(with: script.url) { url, _, _ in
        continuation.resume(returning: url.flatMap { try? Data(contentsOf: $0) })
      }.resume()
    }
    #expect(file == Data(content.utf8))
    // An async function must return a response, so one is made.
    let (loaded, made) = try await session.data(from: script.url)
    #expect(text(loaded) == content && made.url == script.url)
  }

  @Test func bytesComeOneByOne() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond()
      $0.load("ab")
      $0.load("c")
      $0.finish()
    }
    let (bytes, response) = try await script.session().bytes(from: script.url)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    var all: [UInt8] = []
    for try await byte in bytes { all.append(byte) }
    #expect(all == Array("abc".utf8))
  }

  @Test func aDownloadIsAFile() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond()
      $0.load("con")
      $0.load("tent")
      $0.finish()
    }
    let (file, _) = try await script.session().download(from: script.url)
    #expect(try String(contentsOf: file, encoding: .utf8) == "content")
    try FileManager.default.removeItem(at: file)
    let delegate = RecordingDelegate()
    script.session(delegate).downloadTask(with: script.url).resume()
    await delegate.wait()
    #expect(delegate.events == ["file content", "metrics 1", "end"])
  }

  @Test func aDataTaskMayBecomeADownload() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond()
      $0.load("content")
      $0.finish()
    }
    let delegate = RecordingDelegate(disposition: .becomeDownload)
    script.session(delegate).dataTask(with: script.url).resume()
    await delegate.wait()
    #expect(delegate.events == ["response 200", "download", "file content", "metrics 1", "end"])
  }

  @Test func theDispositionMayCancel() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond()
      $0.load("content")
    }
    let delegate = RecordingDelegate(disposition: .cancel)
    script.session(delegate).dataTask(with: script.url).resume()
    await delegate.wait()
    #expect(delegate.events == ["response 200", "metrics 1", "failure"])
    #expect((delegate.error as? URLError)?.code == .cancelled)
    await script.wait(for: "stop")
  }

  // MARK: - Errors

  @Test func anErrorIsPassedOnAsItIs() async throws {
    let script = try ScriptedProtocol.script { $0.fail(OwnError(number: 7)) }
    let session = script.session()
    let error = await #expect(throws: OwnError.self) { try await session.data(from: script.url) }
    #expect(error == OwnError(number: 7))
    await #expect(throws: OwnError.self) { try await session.download(from: script.url) }
    await #expect(throws: OwnError.self) { try await session.bytes(from: script.url) }
    let handed: (any Error)? = await withCheckedContinuation { continuation in
      session.dataTask(with: script.url) { continuation.resume(returning: $2) }.resume()
    }
    #expect(handed as? OwnError == OwnError(number: 7))
    let delegate = RecordingDelegate()
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await delegate.wait()
    #expect(delegate.error as? OwnError == OwnError(number: 7))
    #expect(task.error as? OwnError == OwnError(number: 7))
  }

  @Test func aURLErrorIsNotAddedTo() async throws {
    let script = try ScriptedProtocol.script { $0.fail(URLError(.notConnectedToInternet)) }
    let error = await #expect(throws: URLError.self) { try await script.session().data(from: script.url) }
    #expect(error == URLError(.notConnectedToInternet))
  }

  @Test func bytesFailWhereTheProtocolFails() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond()
      $0.load("ab")
      $0.fail(OwnError(number: 1))
    }
    let (bytes, _) = try await script.session().bytes(from: script.url)
    var iterator = bytes.makeAsyncIterator()
    #expect(try await iterator.next() == 0x61)
    #expect(try await iterator.next() == 0x62)
    await #expect(throws: OwnError.self) { try await iterator.next() }
  }

  @Test func aProtocolThatDoesNotLoadFails() async throws {
    final class Lazy: URLProtocol {
      override class func canInit(with request: URLRequest) -> Bool { true }
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [Lazy.self]
    let url = try #require(URL(string: "lazy://host"))
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: configuration).data(from: url)
    }
    #expect(error?.code == .unsupportedURL)
    #expect(error?.localizedDescription.contains("startLoading") == true)
  }

  // MARK: - Unusual orders

  @Test func withoutAResponseOneIsMade() async throws {
    let script = try ScriptedProtocol.script {
      $0.load("content")
      $0.finish()
    }
    let (data, response) = try await script.session().data(from: script.url)
    #expect(text(data) == "content")
    #expect(response.url == script.url)
    #expect(response.expectedContentLength == -1)
    let silent = try ScriptedProtocol.script { $0.finish() }
    let (nothing, _) = try await silent.session().data(from: silent.url)
    #expect(nothing.isEmpty)
    let (bytes, _) = try await silent.session().bytes(from: silent.url)
    for try await _ in bytes { Issue.record("there is nothing") }
  }

  @Test func whatIsSaidTwiceOrTooLateHasNoEffect() async throws {
    let script = try ScriptedProtocol.script { one in
      one.respond(200)
      one.respond(500)
      one.load("a")
      one.redirect(to: URL(fileURLWithPath: "/"))
      one.finish()
      one.finish()
      one.load("b")
      one.fail(URLError(.unknown))
    }
    let delegate = RecordingDelegate()
    script.session(delegate).dataTask(with: script.url).resume()
    await delegate.wait()
    await script.wait(for: "stop")
    for one in script.made {
      one.respond()
      one.load("c")
      one.finish()
      one.fail(URLError(.unknown))
    }
    #expect(delegate.events == ["response 200", "data a", "metrics 1", "end"])
  }

  // MARK: - Redirections

  @Test func aRedirectionIsAskedAboutAndLoadedByAProtocol() async throws {
    let target = try ScriptedProtocol.script {
      $0.respond(200)
      $0.load("there")
      $0.finish()
    }
    let script = try ScriptedProtocol.script { $0.redirect(to: target.url.appendingPathComponent("new")) }
    let delegate = RecordingDelegate()
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["redirect 302 /new", "response 200", "data there", "metrics 2", "end"])
    #expect(task.currentRequest?.url?.path == "/new")
    #expect(task.originalRequest?.url == script.url)
    await script.wait(for: "stop")
    await target.wait(for: "stop")
    #expect(script.events == ["start", "stop"])
    #expect(target.events == ["start", "stop"])
  }

  @Test func aRedirectionMayLeadToTheNetwork() async throws {
    let server = try TestServer()
    let url = try #require(URL(string: server.url("/bytes/10")))
    let script = try ScriptedProtocol.script {
      $0.redirect(to: url)
      $0.load("too late")
      $0.finish()
    }
    let (data, response) = try await script.session().data(from: script.url)
    #expect(data.count == 10)
    #expect(response.url == url)
  }

  @Test func aServersRedirectionMayLeadToAProtocol() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond()
      $0.load("own")
      $0.finish()
    }
    let server = try TestServer()
    server.route("GET", "/away") { [url = script.url] _ in
      TestServer.Response(status: 302, fields: ["Location": url.absoluteString], body: .bytes([]))
    }
    let url = try #require(URL(string: server.url("/away")))
    let (data, _) = try await script.session().data(from: url)
    #expect(text(data) == "own")
  }

  @Test func aRefusedRedirectionIsTheResult() async throws {
    let full = try ScriptedProtocol.script {
      $0.redirect(to: URL(fileURLWithPath: "/elsewhere"))
      $0.respond(302)
      $0.load("moved")
      $0.finish()
    }
    let terse = try ScriptedProtocol.script { $0.redirect(to: URL(fileURLWithPath: "/elsewhere")) }
    for (script, content) in [(full, "moved"), (terse, "")] {
      let delegate = RecordingDelegate(redirection: { _ in nil })
      let (data, response) = try await script.session(delegate).data(from: script.url)
      #expect((response as? HTTPURLResponse)?.statusCode == 302)
      #expect(text(data) == content)
    }
  }

  @Test func redirectionsForEverFail() async throws {
    let script = try ScriptedProtocol.script { one in
      if let url = one.request.url { one.redirect(to: url) }
    }
    let error = await #expect(throws: URLError.self) { try await script.session().data(from: script.url) }
    #expect(error?.code == .httpTooManyRedirects)
    await script.wait(for: "stop", count: 21)
    #expect(script.events.count { $0 == "start" } == 21)
  }

  /// An error of `NSURLErrorDomain` arrives as a `URLError`, as on Darwin; other errors arrive unchanged.
  @Test func errorsOfTheDomain() async throws {
    for domain in [NSURLErrorDomain, NSPOSIXErrorDomain] {
      let script = try ScriptedProtocol.script { one in
        one.fail(NSError(domain: domain, code: NSURLErrorTimedOut, userInfo: ["own": 1]))
      }
      let error = await #expect(throws: (any Error).self) { try await script.session().data(from: script.url) }
      #expect((error as? URLError)?.code == (domain == NSURLErrorDomain ? .timedOut : nil))
      let other = error.map { $0 as NSError }
      #expect(other?.domain == domain && other?.code == -1001 && other?.userInfo["own"] as? Int == 1)
    }
  }

  // MARK: - Requests

  @Test func theProtocolSeesTheBody() async throws {
    let seen = Mutex<[String]>([])
    let script = try ScriptedProtocol.script { one in
      var bytes = [UInt8](repeating: 0, count: 100)
      one.request.httpBodyStream?.open()
      let count = one.request.httpBodyStream?.read(&bytes, maxLength: 100) ?? 0
      let text = String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
      // A body given as `Data` is also in `httpBody`.
      #expect(one.request.httpBody.map { $0 == Data(text.utf8) } ?? ["file", "stream"].contains(text))
      seen.withLock { $0.append(text) }
      one.respond()
      one.finish()
    }
    var request = URLRequest(url: script.url)
    request.httpMethod = "POST"
    let session = script.session()
    _ = try await session.upload(for: request, from: Data("data".utf8))
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try Data("file".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    _ = try await session.upload(for: request, fromFile: file)
    request.httpBody = Data("own".utf8)
    _ = try await session.data(for: request)
    let delegate = RecordingDelegate(bodyStream: { InputStream(data: Data("stream".utf8)) })
    request.httpBody = nil
    script.session(delegate).uploadTask(withStreamedRequest: request).resume()
    await delegate.wait()
    #expect(seen.withLock { $0 } == ["data", "file", "own", "stream"])
  }

  @Test func theProtocolSeesTheConfigurationsFields() async throws {
    let seen = Mutex<[String: String]?>(nil)
    let script = try ScriptedProtocol.script { one in
      seen.withLock { $0 = one.request.allHTTPHeaderFields }
      one.respond()
      one.finish()
    }
    let configuration = script.configuration()
    configuration.httpAdditionalHeaders = ["X-One": "configuration", "X-Two": "configuration"]
    var request = URLRequest(url: script.url)
    request.setValue("request", forHTTPHeaderField: "X-One")
    _ = try await URLSession(configuration: configuration).data(for: request)
    #expect(seen.withLock { $0 } == ["X-One": "request", "X-Two": "configuration"])
  }

  @Test func aProtocolMayBringASchemeOfItsOwn() async throws {
    final class Greeting: URLProtocol {
      override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "greeting" }
      override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        var request = request
        request.url = URL(string: request.url?.absoluteString.lowercased() ?? "")
        return request
      }
      override func startLoading() {
        guard let url = request.url else { return }
        let response = URLResponse(
          url: url, mimeType: "text/plain", expectedContentLength: 5, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("hello".utf8))
        client?.urlProtocolDidFinishLoading(self)
      }
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [NSObject.self, Greeting.self]
    let url = try #require(URL(string: "greeting:WORLD"))
    let (data, response) = try await URLSession(configuration: configuration).data(from: url)
    #expect(text(data) == "hello")
    #expect(response.url?.absoluteString == "greeting:world")
    #expect(response.mimeType == "text/plain")
  }

  @Test func aProtocolMayLoadByASessionOfItsOwn() async throws {
    let server = try TestServer()
    let url = try #require(URL(string: server.url("/get?through=protocol")))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [PassingProtocol.self]
    let (data, response) = try await URLSession(configuration: configuration).data(from: url)
    #expect(response.url == url)
    #expect(text(data).contains("through=protocol"))
    #expect(server.requests.last?.fields["x-passed"] == "1")
  }
}

/// A protocol that loads by a session in which it is registered itself, and marks each request that it has handled.
private final class PassingProtocol: URLProtocol, @unchecked Sendable {
  private static let key = "seen"
  private let inner = Mutex<URLSessionDataTask?>(nil)

  override class func canInit(with request: URLRequest) -> Bool { property(forKey: key, in: request) == nil }

  override func startLoading() {
    guard let request = (request as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { return }
    Self.setProperty(true, forKey: Self.key, in: request)
    request.setValue("1", forHTTPHeaderField: "X-Passed")
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [PassingProtocol.self]
    let task = URLSession(configuration: configuration).dataTask(with: request as URLRequest) {
      [self] data, response, error in
      if let error { client?.urlProtocol(self, didFailWithError: error) }
      if let response { client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed) }
      if let data { client?.urlProtocol(self, didLoad: data) }
      client?.urlProtocolDidFinishLoading(self)
    }
    inner.withLock { $0 = task }
    task.resume()
  }

  override func stopLoading() { inner.withLock { $0 }?.cancel() }
}
