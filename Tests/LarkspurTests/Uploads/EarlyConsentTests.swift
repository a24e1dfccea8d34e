import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// A server that answers completely before it has read the request's body gets the whole body, and the connection is
/// reused.
@Suite struct EarlyConsentTests {
  enum Source: CaseIterable { case data, file, stream, hesitantStream }

  /// More bytes than the socket buffers hold.
  private static let bytes = TestServer.content(count: 24 << 20)
  /// Bytes for a stream that has 100 at a time with pauses in between; they fit into the socket buffers.
  private static let few = TestServer.content(count: 20_000)

  @Test(.timeLimit(.minutes(2)), arguments: Source.allCases, [false, true])
  func theServerGetsAllOfTheBody(from source: Source, isSecure: Bool) async throws {
    let authority = try TestCA()
    let server = try TestServer(tls: isSecure ? TestServer.TLS(certificate: try authority.issue()) : nil)
    let directory = try TemporaryDirectory()
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
      let file = directory.url.appending(path: "body")
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
    // The next request uses the same connection.
    let (_, response) = try await session.data(from: try #require(URL(string: server.url("/get"))))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.connectionsAccepted == 1)
    // The server has read the whole body by now.
    let seen = try #require(server.requests.first)
    #expect(seen.bodyCount == bytes.count)
    #expect(seen.bodyChecksum == TestServer.contentChecksum(count: bytes.count))
  }

  /// A delegate that signals to the server that the response has arrived.
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
