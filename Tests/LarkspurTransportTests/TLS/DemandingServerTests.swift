import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Servers whose messages of TLS's own meet an upload: none of them may hold the loop, which has a second connection to
/// serve each time.
@Suite struct DemandingServerTests {
  let ca: TestCA
  let server: TestServer
  let client: SecureClient

  init() throws {
    ca = try TestCA()
    server = try SecureExchangeTests.server(ca) { $0.versions = .tls1_3 ... .tls1_3 }
    client = try SecureClient(trusting: ca)
  }

  private func upload(_ count: Int, deadline: Duration = .seconds(30)) async -> (status: Int, error: TransportError?) {
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    return await loop.run {
      do throws(TransportError) {
        let connection = try await Connection.open(
          to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
        defer { connection.close() }
        let exchange = try await connection.send(
          request("POST", "/post", body: count), body: [UInt8](repeating: 7, count: count),
          deadline: loop.kernel.now().advanced(by: deadline))
        try await exchange.discardBody()
        return (exchange.status, nil)
      } catch {
        return (0, error)
      }
    }
  }

  private static let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

  /// Half a NewSessionTicket stops whoever wants to write until the rest comes, which never does.
  @Test func halfAMessage() async throws {
    server.enqueue([.expectHead, .sendRecord(type: 22, [4, 0, 0, 200, 0, 0]), .hang])
    #expect(await upload(20_000_000, deadline: .milliseconds(300)).error == .timedOut(.sending))
    #expect(await client.get(from: server).status == 200)
  }

  /// Answers are demanded, and none is taken.
  @Test func answersThatNobodyTakes() async throws {
    server.enqueue([.expectHead, .updateKey(isRequested: true, times: 20_000), .hang])
    let error = await upload(20_000_000, deadline: .milliseconds(500)).error
    #expect(error != nil)
    #expect(await client.get(from: server).status == 200)
  }

  /// The server has gone, and what it sent before still demands answers.
  @Test func answersForNobody() async throws {
    server.enqueue([.expectHead, .updateKey(isRequested: true, times: 5000), .reset])
    #expect(await upload(20_000_000).error != nil)
    server.enqueue([.expectHead, .updateKey(isRequested: true, times: 5000), .send(Self.response), .close])
    _ = await upload(20_000_000)
    #expect(await client.get(from: server).status == 200)
  }

  /// New keys in the middle of an upload: it goes on with them.
  @Test func newKeysMeanwhile() async throws {
    server.enqueue([
      .expectHead, .updateKey(isRequested: true, times: 3), .expectBody, .send(Self.response), .expectClose,
    ])
    let outcome = await upload(5_000_000)
    #expect(outcome.error == nil)
    #expect(outcome.status == 200)
    #expect(server.failures == [])
    #expect(server.requests.first?.bodyCount == 5_000_000)
  }

  /// A large upload is complete when its last ciphertext has left, whoever sends it, and the connection lives on.
  @Test func uploadsAndTheNextRequest() async throws {
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    try await loop.run { () async throws(TransportError) in
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      defer { connection.close() }
      for count in [4_221_875, 1, 16_384, 100_000] {
        let exchange = try await connection.send(
          request("POST", "/post", body: count), body: [UInt8](repeating: 7, count: count))
        try await exchange.discardBody()
      }
    }
    #expect(server.connectionsAccepted == 1)
    #expect(server.requests.map(\.bodyCount) == [4_221_875, 1, 16_384, 100_000])
  }
}
