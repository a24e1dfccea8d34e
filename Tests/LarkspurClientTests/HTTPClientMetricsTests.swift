import LarkspurBytes
import LarkspurClient
import LarkspurTestServer
import Testing

/// The recorded attempts of a client's requests.
@Suite struct HTTPClientMetricsTests {
  let server: TestServer
  let client: HTTPClient
  let recorder = HTTPClient.Recorder()

  init() throws {
    server = try TestServer()
    client = HTTPClientTests.client()
  }

  private func request(_ path: String) -> HTTPClient.Request {
    var request = HTTPClient.Request(server.url(path))
    request.recorder = recorder
    return request
  }

  /// Each response is an attempt, and the second one uses the connection of the first one.
  @Test func aRedirection() async throws {
    try await client.perform(request("/redirect-to?url=/gzip/1000")) { _ = try await $0.body.collect(upTo: 1000) }
    let attempts = recorder.attempts
    #expect(attempts.map(\.status) == [302, 200] && attempts.map(\.isReused) == [false, true])
    #expect(attempts.map(\.url) == [server.url("/redirect-to?url=/gzip/1000"), server.url("/gzip/1000")])
    let (first, last) = (try #require(attempts.first), try #require(attempts.last))
    #expect(first.remoteAddress == server.authority && first.localAddress != nil && !first.isProxied)
    #expect(first.connectStart != nil && first.handshakeStart == nil && first.tlsVersion == nil)
    #expect(last.connectStart == nil && last.contentBytes == 1000 && last.responseBodyBytes > 0)
    #expect(last.requestHeadBytes > 0 && last.requestBodyBytes == 0 && last.responseHeadBytes > 0)
    let times = [
      first.fetchStart, first.connectStart, first.connectEnd, first.requestStart, first.responseStart,
      first.responseEnd,
      last.fetchStart, last.requestStart, last.responseStart, last.responseEnd,
    ].compactMap(\.self)
    #expect(times.count == 10 && times == times.sorted())
  }

  /// An attempt that fails has the times up to its failure.
  @Test func aFailure() async throws {
    server.enqueue([.expectRequest, .close])
    #expect(await HTTPClientTests.failure { try await client.perform(request("/")) { _ in } } == .connectionLost)
    let attempt = try #require(recorder.attempts.first)
    #expect(recorder.attempts.count == 1 && attempt.status == nil)
    #expect(attempt.requestEnd != nil && attempt.responseStart == nil)
  }

  @Test func aWebSocket() async throws {
    try await client.webSocket(request("/websocket/echo")) { _ in }
    #expect(recorder.attempts.map(\.status) == [101])
  }
}
