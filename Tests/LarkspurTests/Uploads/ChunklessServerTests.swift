import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// RFC 9112 6.1: a chunked body is not sent to a server that is known to speak HTTP/1.0. Its latest response decides.
@Suite struct ChunklessServerTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func post(to url: String, length: Int? = nil) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("body".utf8))
    if let length { request.setValue("\(length)", forHTTPHeaderField: "Content-Length") }
    return request
  }

  private func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> (URLSession, UploadRecorder) {
    let recorder = UploadRecorder { InputStream(data: Data("body".utf8)) }
    let configuration = URLSessionConfiguration.ephemeral
    change(configuration)
    return (URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil), recorder)
  }

  /// A script that answers one request and closes the connection.
  private func answer(_ head: String) -> TestServer.Script {
    [.expectRequest, .send("\(head)\r\nContent-Length: 0\r\n\r\n"), .close]
  }

  @Test(arguments: [
    "HTTP/1.0 307 X\r\nLocation: /2", "HTTP/1.0 308 X\r\nLocation: /2",
    "HTTP/1.0 401 X\r\nWWW-Authenticate: Basic realm=\"r\"",
  ])
  func aBodyOfUnknownLengthIsNotSentAgain(head: String) async throws {
    server.enqueue(answer(head), [.serveRoutes])
    let (session, _) = session()
    let url = server.url("/1").replacing("http://", with: "http://user:word@")
    let error = await #expect(throws: URLError.self) { try await session.data(for: post(to: url)) }
    #expect(error?.code == .requestBodyStreamExhausted)
    #expect(server.requestsReceived == 1)
    session.invalidateAndCancel()
  }

  @Test(arguments: ["HTTP/1.0 307 X\r\nLocation: /post", "HTTP/1.1 307 X\r\nLocation: /post"])
  func aKnownLengthIsSentInEitherCase(head: String) async throws {
    server.enqueue(answer(head), [.serveRoutes])
    let (session, _) = session()
    _ = try await session.data(for: post(to: server.url("/1"), length: 4))
    #expect(server.requests.map { $0.fields["Content-Length"] } == ["4", "4"])
    #expect(server.requests.map { $0.fields["Transfer-Encoding"] } == [nil, nil])
    session.invalidateAndCancel()
  }

  @Test func aServerOfHTTP11GetsChunksAgain() async throws {
    server.enqueue(answer("HTTP/1.1 307 X\r\nLocation: /post"), [.serveRoutes])
    let (session, _) = session()
    _ = try await session.data(for: post(to: server.url("/1")))
    #expect(server.requests.map { $0.fields["Transfer-Encoding"] } == ["chunked", "chunked"])
    session.invalidateAndCancel()
  }

  /// The version of one origin says nothing about the origin of a redirection.
  @Test func whereItIsRedirectedToTheLatestAnswerCounts() async throws {
    let other = try TestServer()
    server.enqueue(answer("HTTP/1.0 307 X\r\nLocation: \(other.url("/post"))"))
    let (session, _) = session()
    _ = try await session.data(for: post(to: server.url("/1")))
    #expect(other.requests.map { $0.fields["Transfer-Encoding"] } == ["chunked"])
    session.invalidateAndCancel()
  }

  /// A response to any kind of task shows the server's version, and a newer response overrides an older one.
  @Test(arguments: [false, true]) func theLatestAnswerCountsForOtherTasks(isWatched: Bool) async throws {
    server.enqueue(
      answer("HTTP/1.0 204 X"), answer("HTTP/1.1 204 X"), [.serveRoutes])
    let (watched, _) = session()
    let session = isWatched ? watched : URLSession(configuration: .ephemeral)
    let get = URLRequest(url: try #require(URL(string: server.url("/"))))
    _ = try await session.data(for: get)
    let error = await #expect(throws: URLError.self) { try await session.data(for: post(to: server.url("/post"))) }
    #expect(error?.code == .requestBodyStreamExhausted)
    #expect(server.requestsReceived == 1)
    _ = try await session.data(for: get)
    let (_, response) = try await session.data(for: post(to: server.url("/post")))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.requests.last?.fields["Transfer-Encoding"] == "chunked")
    session.invalidateAndCancel()
    watched.invalidateAndCancel()
  }
}
