import LarkspurIO
import LarkspurTestServer
import TestKit
import Testing

/// Tests the retries of `larkspur get` with a server that fails. Each retry waits up to half a second at first.
@Suite struct RetryTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String...) async throws -> Command.Result {
    try await Command(["get", server.url(path)] + arguments, directory: directory.path).end()
  }

  private func lines(_ result: Command.Result) -> [Substring] { result.errors.split(separator: "\n") }

  private static let busy: TestServer.Script = [
    .expectRequest, .send("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy"), .close,
  ]
  private static let total = 300_000
  private static let part = 100_000

  /// A response that breaks after the first part.
  private func broken(_ fields: String = "") -> TestServer.Script {
    [
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: \(Self.total)\r\n\(fields)\r\n"),
      .sendContent(0..<Self.part), .close,
    ]
  }

  private func rest(_ tag: String) -> TestServer.Script {
    [
      .expectRequest,
      .send(
        "HTTP/1.1 206 Partial\r\nContent-Length: \(Self.total - Self.part)\r\nETag: \(tag)\r\n"
          + "Content-Range: bytes \(Self.part)-\(Self.total - 1)/\(Self.total)\r\n\r\n"),
      .sendContent(Self.part..<Self.total),
    ]
  }

  private var hasWholeFile: Bool {
    get throws { TestServer.Checksum(try directory.bytes(of: "file")) == TestServer.contentChecksum(count: Self.total) }
  }

  @Test func retry() async throws {
    server.enqueue(Self.busy)
    let result = try await get("/bytes/10", "--retry", "1")
    #expect(result.status == 0 && result.output.count == 10 && server.requestsReceived == 2)
    let line = try #require(lines(result).first)
    #expect(lines(result).count == 1 && line.hasPrefix("larkspur: the server answered with 503; the next try is in "))
  }

  /// The last response or error counts, with its status.
  @Test func theLastAttemptCounts() async throws {
    let refused = try await get("/status/503", "--retry", "1", "-f", "-s")
    #expect(refused.status == 22 && refused.errors.isEmpty && server.requestsReceived == 2)
    let broken = try await get("/reset", "--retry", "1")
    #expect(broken.status == 56 && lines(broken).count == 2 && server.requestsReceived == 4)
  }

  /// Without a file or an option there is one attempt, and no more for a request that may have had an effect.
  @Test func oneAttempt() async throws {
    #expect(try await get("/status/503", "-f").status == 22)
    #expect(try await get("/status/503", "-f", "--retry", "0", "-o", "file").status == 22)
    #expect(try await get("/status/503", "-f", "--retry", "2", "-d", "x").status == 22)
    #expect(server.requestsReceived == 3)
    #expect(try await get("/status/503", "-f", "--retry", "1", "--retry-all", "-d", "x").status == 22)
    #expect(server.requestsReceived == 5)
  }

  /// A GET into a file continues with a range and a strong validator.
  @Test func aFileContinues() async throws {
    server.enqueue(broken("ETag: \"1\"\r\n"), Self.busy, rest("\"1\""))
    let result = try await get("/file", "-o", "file")
    #expect(result.status == 0 && lines(result).count == 2)
    #expect(try hasWholeFile)
    #expect(server.requests.map { $0.fields["Range"] } == [nil, "bytes=\(Self.part)-", "bytes=\(Self.part)-"])
    #expect(server.requests.map { $0.fields["If-Range"] } == [nil, "\"1\"", "\"1\""])
  }

  /// Without a validator, and for another version, a file starts over.
  @Test func aFileStartsOver() async throws {
    let whole: TestServer.Script = [.serveRoutes(requests: 1)]
    server.enqueue(broken("ETag: \"1\"\r\n"), rest("\"2\""), whole)
    #expect(try await get("/bytes/\(Self.total)", "-o", "file").status == 0)
    #expect(try hasWholeFile)
    #expect(server.requests.map { $0.fields["Range"] } == [nil, "bytes=\(Self.part)-", nil])
    server.enqueue(broken(), whole)
    #expect(try await get("/bytes/\(Self.total)", "-o", "file").status == 0)
    #expect(try hasWholeFile)
    #expect(server.requests.last?.fields["Range"] == nil && server.requestsReceived == 5)
  }

  /// After the last retry the file is as it was before.
  @Test func aFileThatBreaks() async throws {
    try directory.write("old", to: "file")
    server.enqueue(broken("ETag: \"1\"\r\n"), broken("ETag: \"2\"\r\n"))
    let result = try await get("/file", "-o", "file", "--retry", "1")
    #expect(result.status == 18 && server.requestsReceived == 2)
    #expect(try directory.bytes(of: "file") == Array("old".utf8))
  }
}
