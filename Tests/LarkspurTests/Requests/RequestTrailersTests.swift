import Foundation
import LarkspurTestServer
import LarkspurTransfers
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Trailers of requests and of responses, with a server that reads and writes them.
@Suite(.timeLimit(.minutes(1))) struct RequestTrailersTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)

  init() throws { server = try TestServer() }

  private func upload(
    _ path: String = "/post", _ names: [String] = ["Digest"],
    _ values: @escaping @Sendable () async throws -> [String: String] = { ["Digest": "x"] }
  ) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: server.url(path))))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("body".utf8))
    request.setTrailers(names, values: values)
    return request
  }

  @Test func aStreamedBodyHasTrailers() async throws {
    let isOver = Atomic(false)
    var request = try upload("/post", ["digest", "X-Left-Out"]) {
      isOver.store(true, ordering: .relaxed)
      return ["Digest": "sha-256=abc"]
    }
    request.setValue("old", forHTTPHeaderField: "Trailer")
    _ = try await session.data(for: request)
    let seen = try #require(server.requests.last)
    #expect(seen.fields["Trailer"] == "digest, X-Left-Out" && seen.fields["Transfer-Encoding"] == "chunked")
    #expect(seen.bodyText == "body" && seen.trailers["Digest"] == "sha-256=abc")
    #expect(seen.trailers["X-Left-Out"] == nil && isOver.load(ordering: .relaxed))
  }

  @Test(arguments: ["Content-Length", "Host", "If-Match", "a b", ""]) func namesThatAreForbidden(name: String)
    async throws
  {
    let request = try upload("/post", ["Digest", name])
    let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
    #expect(error?.code == .badURL && error?.localizedDescription.contains("setTrailers") == true)
    #expect(server.connectionsAccepted == 0)
  }

  @Test func bodiesThatAreNotStreamed() async throws {
    var declared = try upload()
    declared.setValue("4", forHTTPHeaderField: "Content-Length")
    var data = try upload()
    data.httpBody = Data("body".utf8)
    var none = try upload()
    none.httpBodyStream = nil
    // Long data is compressed in chunks, and is no stream all the same.
    var compressed = try upload()
    compressed.httpBody = Data(count: 100_000)
    compressed.bodyCompression = .gzip
    for request in [declared, data, none, compressed] {
      let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
      #expect(error?.code == .badURL && error?.localizedDescription.contains("setTrailers") == true)
    }
    #expect(server.connectionsAccepted == 0)
  }

  @Test func valuesThatFail() async throws {
    struct Failure: Error {}
    for request in [
      try upload("/post", ["Digest"], { throw Failure() }), try upload("/post", ["Digest"], { ["Other": "x"] }),
      try upload("/post", ["Digest"], { ["Digest": "a\r\nb: c"] }),
    ] {
      let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
      #expect(error?.code == .requestBodyStreamExhausted)
    }
    #expect(server.requests.isEmpty)
  }

  /// A redirection that turns the request into a GET drops its trailers with its body.
  @Test func redirectionsDropTrailers() async throws {
    server.route("POST", "/moved") { _ in TestServer.Response(status: 303, fields: ["Location": "/get"]) }
    let (_, response) = try await session.data(for: try upload("/moved"))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.requests.last?.fields["Trailer"] == nil && server.requests.first?.trailers["Digest"] == "x")
  }

  @Test func backgroundSessionsRefuseTrailers() throws {
    var request = try upload()
    request.httpBodyStream = nil
    let error = #expect(throws: URLError.self) { try TransferRequest(request, isUpload: true) }
    #expect(error?.code == .badURL && error?.localizedDescription.contains("setTrailers") == true)
  }

  @Test func trailersOfAResponse() async throws {
    let url = try #require(URL(string: server.url("/chunked/1000?trailers=1")))
    let (data, response) = try await session.data(from: url)
    let response200 = try #require(response as? HTTPURLResponse)
    #expect(
      data.count == 1000 && response200.trailerFields == ["X-Checksum": "\(TestServer.contentChecksum(count: 1000))"])
    #expect(response200.value(forHTTPHeaderField: "X-Checksum") == nil)
    // Read from a sequence, the trailers come after the last byte.
    let (bytes, head) = try await session.bytes(from: url)
    var count = 0
    for try await _ in bytes { count += 1 }
    #expect(count == 1000 && (head as? HTTPURLResponse)?.trailerFields == response200.trailerFields)
    let (file, downloaded) = try await session.download(from: url)
    try FileManager.default.removeItem(at: file)
    #expect((downloaded as? HTTPURLResponse)?.trailerFields == response200.trailerFields)
    let (_, plain) = try await session.data(from: try #require(URL(string: server.url("/bytes/10"))))
    #expect((plain as? HTTPURLResponse)?.trailerFields == [:])
  }
}
