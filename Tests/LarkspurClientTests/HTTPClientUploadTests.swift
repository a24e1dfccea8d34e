import Foundation
import LarkspurClient
import LarkspurTestServer
import TestKit
import Testing

/// The bodies of a client's requests.
@Suite struct HTTPClientUploadTests {
  let server: TestServer
  let client = HTTPClientTests.client()

  init() throws { server = try TestServer() }

  private func send(_ body: HTTPClient.RequestBody) async throws -> TestServer.Request {
    let status = try await client.post(server.url("/anything"), body, contentType: "text/plain") { $0.status }
    #expect(status == 200)
    return try #require(server.requests.last)
  }

  @Test func bytes() async throws {
    let request = try await send(.text("text"))
    #expect(request.bodyText == "text" && request.fields["Content-Length"] == "4")
    #expect(try await send(.bytes([])).fields["Content-Length"] == "0")
  }

  @Test func aSequence() async throws {
    let pieces = AsyncStream<[UInt8]> { continuation in
      for number in 0..<100 { continuation.yield(TestServer.content(number * 1_000..<(number + 1) * 1_000)) }
      continuation.finish()
    }
    let request = try await send(.sequence(pieces))
    #expect(request.bodyCount == 100_000 && request.bodyChecksum == TestServer.contentChecksum(count: 100_000))
    #expect(request.fields["Transfer-Encoding"] == "chunked")
  }

  @Test func aProducer() async throws {
    let chunked = try await send(
      .produced { writer in
        try await writer.write(Array("one".utf8))
        await writer.trailer("X-Sum", "1")
      })
    #expect(chunked.bodyText == "one" && chunked.trailers["X-Sum"] == "1")
    let request = try await send(.produced(length: 3) { try await $0.write(Array("two".utf8)) })
    #expect(request.bodyText == "two" && request.fields["Content-Length"] == "3")
  }

  @Test(arguments: [2, 4]) func aProducerOfAWrongLength(length: Int) async {
    let code = await HTTPClientTests.failure {
      _ = try await send(.produced(length: length) { try await $0.write(Array("one".utf8)) })
    }
    #expect(code == .bodyFailed)
  }

  @Test func aProducerThatFails() async {
    struct Own: Error {}
    #expect(await HTTPClientTests.failure { _ = try await send(.produced { _ in throw Own() }) } == .bodyFailed)
  }

  @Test func aFile() async throws {
    let directory = try TemporaryDirectory()
    try Data(TestServer.content(count: 200_000)).write(to: directory.file("file"))
    let request = try await send(.file(directory.path("file")))
    #expect(request.bodyCount == 200_000 && request.bodyChecksum == TestServer.contentChecksum(count: 200_000))
    #expect(await HTTPClientTests.failure { _ = try await send(.file(directory.path("none"))) } == .bodyFailed)
  }

  /// The response's body is read while the request's body is written: each piece is sent after the answer to the one before.
  @Test func bothDirectionsAtOnce() async throws {
    server.enqueue([
      .expectHead, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .expectBytes("3\r\none\r\n"),
      .send("1\r\n1\r\n"), .expectBytes("3\r\ntwo\r\n"), .send("1\r\n2\r\n"), .expectBytes("0\r\n\r\n"),
      .send("0\r\n\r\n"),
    ])
    let (pieces, continuation) = AsyncStream<[UInt8]>.makeStream()
    let answers = try await client.post(server.url(), .sequence(pieces), contentType: "text/plain") { response in
      var answers: [String] = []
      continuation.yield(Array("one".utf8))
      for try await piece in response.body {
        answers.append(String(decoding: piece, as: UTF8.self))
        if answers.count == 1 { continuation.yield(Array("two".utf8)) } else { continuation.finish() }
      }
      return answers
    }
    #expect(answers == ["1", "2"] && server.failures.isEmpty)
  }

  /// A body that is iterated once cannot be sent again, and a producer can.
  @Test func redirectionsOfBodies() async throws {
    let url = server.url("/redirect-to?url=/anything&status=307")
    let sequence = AsyncStream<[UInt8]> { $0.finish() }
    let code = await HTTPClientTests.failure {
      _ = try await client.post(url, .sequence(sequence), contentType: "text/plain") { $0.status }
    }
    #expect(code == .bodyFailed)
    let produced = HTTPClient.RequestBody.produced { try await $0.write(Array("again".utf8)) }
    #expect(try await client.post(url, produced, contentType: "text/plain") { $0.status } == 200)
    #expect(server.requests.last?.bodyText == "again")
  }
}
