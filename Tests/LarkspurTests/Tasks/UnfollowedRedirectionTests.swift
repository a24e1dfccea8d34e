import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests redirections to URLs that cannot be loaded: the load fails only if the client follows the redirection.
@Suite(.timeLimit(.minutes(1))) struct UnfollowedRedirectionTests {
  /// The targets of redirections, and the error of a load that follows them.
  static let redirections: [(location: String, code: URLError.Code)] = [
    ("ht3p://localhost/", .unsupportedURL), ("mailto:a@b.example", .unsupportedURL),
    ("file:///etc/passwd", .unsupportedURL),
    ("data:,bad", .unsupportedURL), ("javascript:alert(1)", .unsupportedURL), ("http://[oops/", .badURL),
    ("http://a.example:-1/", .badURL), ("http://a.example:99999/", .badURL), ("http://a b/", .badURL),
    ("http:///a", .badURL),
    ("http://\u{fffd}/", .badURL), ("http://[a.example]/", .badURL), ("http://a.example:0/", .cannotConnectToHost),
  ]

  private func server(redirectingTo location: String) throws -> TestServer {
    let server = try TestServer()
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 301 Moved\r\nLocation: \(location)\r\nContent-Length: 5\r\n\r\nmoved"), .hang,
    ])
    return server
  }

  private func session(_ delegate: RecordingDelegate? = nil, _ classes: [AnyClass] = []) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = classes
    return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  }

  @Test(arguments: redirections) func aDelegateThatRefusesGetsTheResponse(
    redirection: (location: String, code: URLError.Code)
  )
    async throws
  {
    let server = try server(redirectingTo: redirection.location)
    let proposed = Mutex<[URL]>([])
    let delegate = RecordingDelegate(redirection: { request in
      if let url = request.url { proposed.withLock { $0.append(url) } }
      return nil
    })
    let task = session(delegate).dataTask(with: try #require(URL(string: server.url("/a"))))
    task.resume()
    await delegate.wait()
    #expect(proposed.withLock { $0.count } == 1)
    let events = delegate.events
    #expect(delegate.error == nil && events.contains("response 301") && events.contains("data moved"), "\(events)")
    #expect((task.response as? HTTPURLResponse)?.statusCode == 301)
  }

  @Test(arguments: redirections) func aDelegateThatFollowsGetsAnError(
    redirection: (location: String, code: URLError.Code)
  )
    async throws
  {
    let server = try server(redirectingTo: redirection.location)
    let delegate = RecordingDelegate()
    let task = session(delegate).dataTask(with: try #require(URL(string: server.url("/a"))))
    task.resume()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == redirection.code)
    #expect(!delegate.events.contains("response 301"))
    let response = try #require(task.response as? HTTPURLResponse)
    #expect(response.statusCode == 301 && response.value(forHTTPHeaderField: "Location") == redirection.location)
  }

  /// Without a delegate every redirection is followed. The completion handler gets the redirection's response together
  /// with the error.
  @Test(arguments: redirections) func handlersGetTheResponseBesideTheError(
    redirection: (location: String, code: URLError.Code)
  )
    async throws
  {
    for isDownload in [false, true] {
      let server = try server(redirectingTo: redirection.location)
      let (session, url) = (session(), try #require(URL(string: server.url("/a"))))
      let (response, error): (URLResponse?, (any Error)?) = await withCheckedContinuation { continuation in
        if isDownload {
          session.downloadTask(with: url) { _, response, error in continuation.resume(returning: (response, error)) }
            .resume()
        } else {
          session.dataTask(with: url) { data, response, error in
            #expect(data == nil)
            continuation.resume(returning: (response, error))
          }.resume()
        }
      }
      #expect((error as? URLError)?.code == redirection.code)
      #expect((response as? HTTPURLResponse)?.statusCode == 301 && response?.url == url)
    }
  }

  // MARK: - Protocols

  /// A protocol that loads `mock:` URLs and redirects `mock:away`.
  private final class MockProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "mock" }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
      guard let url = request.url,
        let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil)
      else { return }
      if url.absoluteString == "mock:away", let own = URL(string: "data:,own") {
        client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: own), redirectResponse: response)
        return
      }
      client?.urlProtocol(
        self, didReceive: URLResponse(url: url, mimeType: nil, expectedContentLength: 4, textEncodingName: nil),
        cacheStoragePolicy: .notAllowed)
      client?.urlProtocol(self, didLoad: Data(url.absoluteString.utf8))
      client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
  }

  @Test(arguments: [("mock:a[%5B", "mock:a%5B%5B"), ("mock://b.example/x", "mock://b.example/x"), ("mock:away", "own")])
  func aProtocolIsAskedForItsScheme(location: String, text: String) async throws {
    let server = try server(redirectingTo: location)
    let url = try #require(URL(string: server.url("/a")))
    let (data, response) = try await session(nil, [MockProtocol.self]).data(from: url)
    #expect(String(decoding: data, as: UTF8.self) == text)
    #expect(response.url?.scheme == (text == "own" ? "data" : "mock"))
  }

  /// A protocol class that does not accept the target changes nothing.
  @Test func aProtocolThatDeclinesIt() async throws {
    let server = try server(redirectingTo: "ht3p://localhost/")
    let url = try #require(URL(string: server.url("/a")))
    let error = await #expect(throws: URLError.self) {
      _ = try await session(nil, [MockProtocol.self]).data(from: url)
    }
    #expect(error?.code == .unsupportedURL && error?.failingURL == url)
    #expect(error?.localizedDescription.contains("ht3p://localhost/") == true)
  }

  // MARK: - Local URLs

  /// A delegate that modifies the URL that a server proposed has not chosen a local URL itself.
  @Test(arguments: ["file:///etc/passwd", "data:,bad"]) func aChangedRequestIsRefusedAsWell(location: String)
    async throws
  {
    let server = try server(redirectingTo: location)
    let delegate = RecordingDelegate(redirection: { request in
      request.url.flatMap { URL(string: $0.absoluteString + "?token=1") }.map { URLRequest(url: $0) }
    })
    session(delegate).dataTask(with: try #require(URL(string: server.url("/a")))).resume()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == .unsupportedURL)
    #expect(!delegate.events.contains { $0.hasPrefix("data") })
  }

  @Test func aDelegateMayChooseADataURL() async throws {
    let server = try server(redirectingTo: "/b")
    let delegate = RecordingDelegate(redirection: { _ in URL(string: "data:,own").map { URLRequest(url: $0) } })
    session(delegate).dataTask(with: try #require(URL(string: server.url("/a")))).resume()
    await delegate.wait()
    #expect(delegate.error == nil && delegate.events.contains("data own"))
  }

  /// A protocol for HTTP passes on a server's redirection, so it cannot lead to a local URL.
  @Test(arguments: ["file:///etc/passwd", "data:,bad"]) func aProtocolPassesARedirectionOn(location: String)
    async throws
  {
    let url = try #require(URL(string: location))
    let script = try ScriptedProtocol.script { $0.redirect(to: url) }
    let delegate = RecordingDelegate()
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == .unsupportedURL)
    #expect((task.response as? HTTPURLResponse)?.statusCode == 302)
  }
}
