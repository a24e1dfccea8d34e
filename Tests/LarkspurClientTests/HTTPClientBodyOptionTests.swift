import Foundation
import LarkspurClient
import LarkspurTestServer
import TestKit
import Testing

/// Request bodies that are compressed, and that have trailers. The server sends each body back with its coding, which the
/// client decodes.
@Suite struct HTTPClientBodyOptionTests {
  let server: TestServer
  let client = HTTPClientTests.client()

  init() throws {
    server = try TestServer()
    server.route("POST", "/echo") { request in
      var response = TestServer.Response(body: .bytes(request.body))
      if let coding = request.fields["Content-Encoding"] { response.fields.add("Content-Encoding", coding) }
      return response
    }
  }

  private func request(_ body: HTTPClient.RequestBody, _ path: String = "/echo") -> HTTPClient.Request {
    HTTPClient.Request(server.url(path), method: "POST", body: body)
  }

  private func send(_ request: HTTPClient.Request) async throws -> [UInt8] {
    try await client.perform(request) { try await $0.body.collect(upTo: 1 << 20) }
  }

  private func failure(of request: HTTPClient.Request) async -> HTTPClientError.Code? {
    await HTTPClientTests.failure { _ = try await send(request) }
  }

  // MARK: - Compression

  private static func content(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 / 100) } }

  /// Sends a body compressed, and checks that the server got it so.
  private func expect(_ body: HTTPClient.RequestBody, isChunked: Bool, returns content: [UInt8]) async throws {
    var request = request(body)
    request.bodyCompression = .gzip
    #expect(try await send(request) == content)
    let seen = try #require(server.requests.last)
    #expect(seen.bodyCount < content.count && seen.fields.values("Content-Encoding") == ["gzip"])
    #expect((seen.fields["Transfer-Encoding"] == "chunked") == isChunked)
    #expect(seen.fields["Content-Length"].flatMap { Int($0) } == (isChunked ? nil : seen.bodyCount))
  }

  @Test(arguments: [(1_000, false), (65_536, false), (65_537, true), (300_000, true)])
  func compressedBytes(count: Int, isChunked: Bool) async throws {
    try await expect(.bytes(Self.content(count)), isChunked: isChunked, returns: Self.content(count))
  }

  @Test(arguments: [nil, 300_000] as [Int?]) func compressedPieces(length: Int?) async throws {
    let (content, half) = (Self.content(300_000), 150_000)
    let produced = HTTPClient.RequestBody.produced(length: length) { writer in
      try await writer.write(Array(content[..<half]))
      try await writer.write(Array(content[half...]))
    }
    try await expect(produced, isChunked: true, returns: content)
    let pieces = AsyncStream<[UInt8]> { continuation in
      for piece in [content[..<half], content[half...]] { continuation.yield(Array(piece)) }
      continuation.finish()
    }
    try await expect(.sequence(pieces, length: length), isChunked: true, returns: content)
  }

  @Test(arguments: [2, 4]) func compressedPiecesOfAnotherLength(length: Int) async {
    var request = request(.produced(length: length) { try await $0.write(Array("one".utf8)) })
    request.bodyCompression = .gzip
    #expect(await failure(of: request) == .bodyFailed)
    #expect(server.requests.isEmpty)
  }

  /// Several tasks write the pieces of one body at once. None of them is lost or broken.
  @Test func compressedPiecesOfSeveralTasks() async throws {
    var request = request(
      .produced { writer in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for letter in UInt8(ascii: "a")...UInt8(ascii: "h") {
            group.addTask { for _ in 0..<20 { try await writer.write([UInt8](repeating: letter, count: 5_000)) } }
          }
          try await group.waitForAll()
        }
      })
    request.bodyCompression = .gzip
    let sent = try await send(request)
    #expect(sent.count == 800_000)
    let runs = stride(from: 0, to: sent.count, by: 5_000).map { Set(sent[$0..<$0 + 5_000]) }
    #expect(runs.allSatisfy { $0.count == 1 } && Set(runs).count == 8)
  }

  /// Short bytes, a file, a body with a coding of its own, and no body at all are sent as they are.
  @Test func whatIsNotCompressed() async throws {
    let directory = try TemporaryDirectory()
    try Data(Self.content(100_000)).write(to: directory.file("file"))
    var coded = request(.bytes(Self.content(1_000)))
    coded.fields = [Field("content-encoding", "identity")]
    for (sent, coding) in [
      (request(.text("ab")), nil), (request(.file(directory.path("file"))), nil), (request(.none), nil),
      (coded, "identity"),
    ] {
      var request = sent
      request.bodyCompression = .gzip
      _ = try await send(request)
      let seen = try #require(server.requests.last)
      #expect(seen.fields["Content-Encoding"] == coding && seen.fields["Transfer-Encoding"] == nil)
    }
    var options = HTTPClient.Options()
    (options.fields, options.proxy) = ([Field("Content-Encoding", "identity")], .none)
    var request = request(.bytes(Self.content(1_000)))
    request.bodyCompression = .gzip
    _ = try await HTTPClient(options).perform(request) { try await $0.body.collect(upTo: 1 << 20) }
    #expect(server.requests.last?.bodyCount == 1_000)
    #expect(server.requests.last?.fields.values("Content-Encoding") == ["identity"])
  }

  // MARK: - Trailers

  private func withTrailers(
    _ names: [String] = ["Digest"], _ body: HTTPClient.RequestBody? = nil, _ path: String = "/post",
    _ values: @escaping @Sendable () async throws -> [String: String] = { ["Digest": "x"] }
  ) -> HTTPClient.Request {
    var request = request(body ?? .produced { try await $0.write(Array("body".utf8)) }, path)
    request.setTrailers(names, values: values)
    return request
  }

  @Test(arguments: [nil, BodyCompression.gzip]) func aStreamedBodyHasTrailers(coding: BodyCompression?) async throws {
    var request = withTrailers(["digest", "X-Left-Out"])
    request.fields = [Field("Trailer", "old")]
    request.bodyCompression = coding
    _ = try await send(request)
    let seen = try #require(server.requests.last)
    #expect(seen.fields.values("Trailer") == ["digest, X-Left-Out"] && seen.fields["Transfer-Encoding"] == "chunked")
    #expect(seen.trailers["Digest"] == "x" && seen.trailers["X-Left-Out"] == nil)
    // An empty list removes them.
    request.setTrailers([]) { [:] }
    _ = try await send(request)
    #expect(server.requests.last?.trailers["Digest"] == nil)
  }

  @Test func trailersThatCannotBeSent() async {
    let long = HTTPClient.RequestBody.bytes(Self.content(100_000))
    var compressed = withTrailers(["Digest"], long)
    compressed.bodyCompression = .gzip
    for request in [
      withTrailers(["Digest", "Content-Length"]), withTrailers(["a b"]), withTrailers(["Digest"], .text("body")),
      withTrailers(["Digest"], HTTPClient.RequestBody.none), withTrailers(["Digest"], .produced(length: 1) { _ in }),
      compressed,
    ] {
      #expect(await failure(of: request) == .invalidRequest)
    }
    #expect(server.connectionsAccepted == 0)
  }

  @Test func valuesThatFail() async {
    struct Own: Error {}
    for values in [{ throw Own() }, { ["Other": "x"] }, { ["Digest": "a\r\nb: c"] }]
      as [@Sendable () async throws -> [String: String]]
    {
      #expect(await failure(of: withTrailers(["Digest"], nil, "/post", values)) == .bodyFailed)
    }
    #expect(server.requests.isEmpty)
  }

  /// A redirection that turns the request into a GET drops its trailers with its body, and one that keeps the body keeps
  /// both options.
  @Test func redirections() async throws {
    server.route("POST", "/moved") { _ in TestServer.Response(status: 303, fields: ["Location": "/get"]) }
    server.route("POST", "/kept") { _ in TestServer.Response(status: 307, fields: ["Location": "/echo"]) }
    _ = try await send(withTrailers(["Digest"], nil, "/moved"))
    #expect(server.requests.last?.method == "GET" && server.requests.last?.fields["Trailer"] == nil)
    var request = withTrailers(["Digest"], nil, "/kept")
    request.bodyCompression = .gzip
    #expect(try await send(request) == Array("body".utf8))
    let seen = try #require(server.requests.last)
    #expect(seen.trailers["Digest"] == "x" && seen.fields["Content-Encoding"] == "gzip")
  }
}
