import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Servers that say yes, in full, before they have read: they get all of the body, and the connection serves others.
@Suite struct EarlyConsentTests {
  enum Source: CaseIterable { case data, file, stream, hesitantStream }

  /// More than any socket takes.
  private static let bytes = TestServer.content(count: 24 << 20)
  /// A hundred at a time: so few that they fit into sockets, and pause in between.
  private static let few = TestServer.content(count: 20_000)

  @Test(.timeLimit(.minutes(2)), arguments: Source.allCases, [false, true])
  func theServerGetsAllOfTheBody(from source: Source, isSecure: Bool) async throws {
    let authority = try TestCA()
    let server = try TestServer(tls: isSecure ? TestServer.TLS(certificate: try authority.issue()) : nil)
    let folder = try TemporaryFolder()
    let answered = TestServer.Signal()
    server.enqueue([
      .expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"), .wait(answered), .expectBody, .serveRoutes,
    ])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([try #require(TLSCertificate(Data(authority.rootCertificateDER)))])
    let listener = Listener(answered)
    let session = URLSession(configuration: configuration, delegate: listener, delegateQueue: nil)
    var request = URLRequest(url: try #require(URL(string: server.url("/post"))))
    request.httpMethod = "POST"
    let bytes = source == .hesitantStream ? Self.few : Self.bytes
    let task: URLSessionTask
    switch source {
    case .data: task = session.uploadTask(with: request, from: Data(bytes))
    case .file:
      let file = folder.url.appending(path: "body")
      try Data(bytes).write(to: file)
      task = session.uploadTask(with: request, fromFile: file)
    case .stream:
      request.httpBodyStream = InputStream(data: Data(bytes))
      task = session.dataTask(with: request)
    case .hesitantStream:
      request.httpBodyStream = HesitantStream(bytes)
      task = session.dataTask(with: request)
    }
    let text = try await listener.load(task)
    #expect(text == "yes")
    // The next one goes where this one went.
    let (_, response) = try await session.data(from: try #require(URL(string: server.url("/get"))))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.connectionsAccepted == 1)
    // By then the server has read all of it.
    let seen = try #require(server.requests.first)
    #expect(seen.bodyCount == bytes.count)
    #expect(seen.bodyChecksum == TestServer.contentChecksum(count: bytes.count))
  }

  /// Tells the server that its answer has come.
  private final class Listener: NSObject, URLSessionDataDelegate {
    private struct State {
      var text = ""
      var waiting: CheckedContinuation<String, any Error>?
    }

    private let answered: TestServer.Signal
    private let state = Mutex(State())

    init(_ answered: TestServer.Signal) { self.answered = answered }

    func load(_ task: URLSessionTask) async throws -> String {
      try await withCheckedThrowingContinuation { continuation in
        state.withLock { $0.waiting = continuation }
        task.resume()
      }
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      answered.fire()
      completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      state.withLock { $0.text += String(decoding: data, as: UTF8.self) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      let (waiting, text) = state.withLock { ($0.waiting.take(), $0.text) }
      if let error { waiting?.resume(throwing: error) } else { waiting?.resume(returning: text) }
    }
  }
}
