import Foundation
import LarkspurTestServer
import LarkspurTransfers
import Testing

@testable import Larkspur

/// Requests whose bodies are compressed. The server sends each body back with its coding, which the session decodes.
@Suite(.timeLimit(.minutes(1))) struct BodyCompressionTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)

  init() throws {
    server = try TestServer()
    server.route("POST", "/echo") { request in
      var response = TestServer.Response(body: .bytes(request.body))
      if let coding = request.fields["Content-Encoding"] { response.fields.add("Content-Encoding", coding) }
      return response
    }
  }

  private func request(_ body: Data?, stream: InputStream? = nil) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: server.url("/echo"))))
    request.httpMethod = "POST"
    if let body { request.httpBody = body }
    if let stream { request.httpBodyStream = stream }
    request.bodyCompression = .gzip
    #expect(request.bodyCompression == .gzip && request != URLRequest(url: request.url ?? URL(filePath: "/")))
    return request
  }

  private func content(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 / 100) }) }

  private func expect(_ request: URLRequest, isChunked: Bool, returns content: Data) async throws {
    let (data, _) = try await session.data(for: request)
    let seen = try #require(server.requests.last)
    #expect(data == content && seen.bodyCount < content.count)
    #expect(seen.fields.values("Content-Encoding") == ["gzip"])
    #expect((seen.fields["Transfer-Encoding"] == "chunked") == isChunked)
    #expect(seen.fields["Content-Length"].flatMap { Int($0) } == (isChunked ? nil : seen.bodyCount))
  }

  @Test(arguments: [1000, 65_536]) func smallDataHasALength(count: Int) async throws {
    try await expect(request(content(count)), isChunked: false, returns: content(count))
  }

  @Test(arguments: [65_537, 1_000_000]) func longDataIsStreamed(count: Int) async throws {
    try await expect(request(content(count)), isChunked: true, returns: content(count))
    // A slice does not begin at 0.
    let slice = content(count + 10).dropFirst(10)
    try await expect(request(slice), isChunked: true, returns: Data(slice))
  }

  @Test(arguments: [1000, 300_000]) func streams(count: Int) async throws {
    try await expect(request(nil, stream: InputStream(data: content(count))), isChunked: true, returns: content(count))
    var declared = try request(nil, stream: InputStream(data: content(count)))
    declared.setValue("\(count)", forHTTPHeaderField: "Content-Length")
    try await expect(declared, isChunked: true, returns: content(count))
  }

  @Test(arguments: [999, 1001]) func streamsOfAnotherLength(declared: Int) async throws {
    var request = try request(nil, stream: InputStream(data: content(1000)))
    request.setValue("\(declared)", forHTTPHeaderField: "Content-Length")
    let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
    #expect(error?.code == .requestBodyStreamExhausted && server.requests.isEmpty)
  }

  @Test func aCompressedStreamHasTrailers() async throws {
    var request = try request(nil, stream: InputStream(data: content(5000)))
    request.setTrailers(["Digest"]) { ["Digest": "x"] }
    try await expect(request, isChunked: true, returns: content(5000))
    #expect(server.requests.last?.trailers["Digest"] == "x")
  }

  /// A short text, a body with a coding of its own, and no body at all are sent as they are.
  @Test func whatIsNotCompressed() async throws {
    _ = try await session.data(for: try request(Data("ab".utf8)))
    #expect(server.requests.last?.bodyText == "ab" && server.requests.last?.fields["Content-Encoding"] == nil)
    var coded = try request(content(1000))
    coded.setValue("identity", forHTTPHeaderField: "Content-Encoding")
    _ = try await session.data(for: coded)
    #expect(server.requests.last?.bodyCount == 1000 && server.requests.last?.fields["Content-Encoding"] == "identity")
    _ = try await session.data(for: try request(nil))
    #expect(server.requests.last?.bodyCount == 0 && server.requests.last?.fields["Content-Encoding"] == nil)
  }

  /// Fields of the session count like those of the request.
  @Test(arguments: [1000, 100_000]) func aCodingOfTheSession(count: Int) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["content-encoding": "identity"]
    let session = URLSession(configuration: configuration)
    for stream in [nil, InputStream(data: content(count))] {
      _ = try await session.data(for: request(stream == nil ? content(count) : nil, stream: stream))
      #expect(server.requests.last?.bodyCount == count)
      #expect(server.requests.last?.fields.values("Content-Encoding") == ["identity"])
    }
    session.invalidateAndCancel()
  }

  /// The kernel sends files.
  @Test func filesAreSentAsTheyAre() async throws {
    let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try content(100_000).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    let (data, _) = try await session.upload(for: try request(nil), fromFile: url)
    #expect(data == content(100_000) && server.requests.last?.fields["Content-Encoding"] == nil)
    let (uploaded, _) = try await session.upload(for: try request(nil), from: content(100_000))
    #expect(uploaded == content(100_000) && server.requests.last?.fields["Content-Encoding"] == "gzip")
  }

  /// A redirection that keeps the body compresses it again.
  @Test func redirections() async throws {
    server.route("POST", "/moved") { _ in TestServer.Response(status: 307, fields: ["Location": "/echo"]) }
    var request = try request(content(1000))
    request.url = URL(string: server.url("/moved"))
    try await expect(request, isChunked: false, returns: content(1000))
  }

  /// The option travels with the requests of background sessions.
  @Test func recordsKeepTheOption() throws {
    let kept = try #require(URLRequest(try TransferRequest(try request(content(1000)), isUpload: false)))
    #expect(kept.bodyCompression == .gzip)
  }
}
