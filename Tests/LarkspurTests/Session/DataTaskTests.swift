import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite struct DataTaskTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  @Test func anAsyncCallLoadsTheBody() async throws {
    let (data, response) = try await session.data(from: try url("/bytes/1000"))
    #expect(data.count == 1000)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(response.expectedContentLength == 1000)
    #expect(response.url == (try url("/bytes/1000")))
  }

  @Test func requestsShareAConnection() async throws {
    for _ in 0..<10 { _ = try await session.data(from: try url("/get")) }
    #expect(server.connectionsAccepted == 1)
  }

  @Test func aHandlerGetsTheBody() async throws {
    let url = try url("/status/404")
    let (data, response): (Data?, URLResponse?) = await withCheckedContinuation { continuation in
      session.dataTask(with: url) { data, response, _ in continuation.resume(returning: (data, response)) }.resume()
    }
    let status = (response as? HTTPURLResponse)?.statusCode
    #expect(data != nil)
    #expect(status == 404)
  }

  @Test func aRedirectIsFollowed() async throws {
    let (_, response) = try await session.data(from: try url("/redirect/3"))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(response.url?.path == "/get")
  }

  @Test func aPostSendsItsBody() async throws {
    var request = URLRequest(url: try url("/post"))
    request.httpMethod = "POST"
    request.httpBody = Data("name=value".utf8)
    let (data, _) = try await session.data(for: request)
    #expect(String(decoding: data, as: UTF8.self).contains("name=value"))
    let seen = try #require(server.requests.last)
    #expect(seen.fields["content-type"] == "application/x-www-form-urlencoded")
  }

  /// RFC 9112 6.3: `Transfer-Encoding` overrides `Content-Length`.
  @Test func aLengthBesideAChunkedContentSaysNothing() async throws {
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    ])
    let (data, response) = try await session.data(from: try url("/both"))
    #expect(data == Data("hello".utf8) && response.expectedContentLength == -1)
    #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Length") == "3")
  }

  /// Port 0 fails like a port without a server.
  @Test func noServerHasPortZero() async throws {
    let url = try #require(URL(string: "http://127.0.0.1:0/"))
    let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
    #expect(error?.code == .cannotConnectToHost && error?.failingURL == url)
  }

  @Test func gzipIsUndone() async throws {
    let (data, response) = try await session.data(from: try url("/gzip"))
    #expect(String(decoding: data.prefix(1), as: UTF8.self) == "{")
    #expect(response.expectedContentLength == -1)
  }

  @Test func cancellingTheCallerCancelsTheLoad() async throws {
    server.enqueue([.expectRequest, .expectClose])
    let url = try url("/never")
    let call = Task { try await session.data(from: url) }
    _ = try await server.waitForRequests(1)
    call.cancel()
    let error = await #expect(throws: URLError.self) { try await call.value }
    #expect(error?.code == .cancelled)
  }

  @Test func bytesComeOneByOne() async throws {
    let (bytes, _) = try await session.bytes(from: try url("/bytes/100000"))
    var count = 0
    for try await _ in bytes { count += 1 }
    #expect(count == 100_000)
  }

  @Test func aDownloadIsAFile() async throws {
    let (file, _) = try await session.download(from: try url("/bytes/300000"))
    #expect(try Data(contentsOf: file).count == 300_000)
    try FileManager.default.removeItem(at: file)
  }
}
