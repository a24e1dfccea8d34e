import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// Servers whose TLS messages arrive during an upload. None of them blocks the loop, which serves a second connection
/// each time. The upload uses a direct connection, or TLS within the TLS of a proxy.
@Suite struct TLSMessagesDuringUploadTests {
  let ca: TestCA
  let server: TestServer
  var client: SecureClient

  init() throws {
    ca = try TestCA()
    server = try SecureExchangeTests.server(ca) { $0.versions = .tls1_3 ... .tls1_3 }
    client = try SecureClient(trusting: ca)
  }

  enum Way: CaseIterable {
    case direct, proxied
  }

  /// Queues the script of the next connection.
  private func enqueue(_ way: Way, _ steps: TestServer.Step...) {
    let tunnel: [TestServer.Step] = [
      .expectRequest("CONNECT", "localhost:443"), .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake,
    ]
    server.enqueue(TestServer.Script((way == .proxied ? tunnel : []) + steps))
  }

  private func open(_ way: Way) async throws(TransportError) -> Connection {
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    switch way {
    case .direct:
      return try await Connection.open(to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
    case .proxied:
      guard let proxy = try? Proxy(.https, host: "127.0.0.1", port: port) else { throw .internalInconsistency }
      return try await Connection.open(
        host: "localhost", port: 443, security: security, via: ProxyRoute(proxy, security: security), on: loop)
    }
  }

  private func upload(
    _ count: Int, _ way: Way, deadline: Duration = .seconds(600)
  ) async -> (status: Int, error: TransportError?) {
    let loop = client.loop
    return await loop.run {
      do throws(TransportError) {
        let connection = try await open(way)
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

  /// Half a NewSessionTicket blocks the upload until its deadline, because the rest never comes.
  @Test(arguments: Way.allCases) func halfAMessage(way: Way) async throws {
    enqueue(way, .expectHead, .sendRecord(type: 22, [4, 0, 0, 200, 0, 0]), .hang)
    #expect(await upload(20_000_000, way, deadline: .milliseconds(300)).error == .timedOut(.sending))
    #expect(await client.get(from: server).status == 200)
  }

  /// A server that demands answers and does not read them cannot block the loop.
  @Test(arguments: Way.allCases) func answersThatAreNotRead(way: Way) async throws {
    enqueue(way, .expectHead, .updateKey(isRequested: true, times: 20_000), .hang)
    let error = await upload(20_000_000, way, deadline: .milliseconds(500)).error
    #expect(error != nil)
    #expect(await client.get(from: server).status == 200)
  }

  /// A server that has gone may have sent messages before that still demand answers.
  @Test(arguments: Way.allCases) func answersForAClosedServer(way: Way) async throws {
    enqueue(way, .expectHead, .updateKey(isRequested: true, times: 5000), .reset)
    #expect(await upload(20_000_000, way).error != nil)
    enqueue(way, .expectHead, .updateKey(isRequested: true, times: 5000), .send(Self.response), .close)
    _ = await upload(20_000_000, way)
    #expect(await client.get(from: server).status == 200)
  }

  /// An answer that fails ends the sending, although the event of the reset has not come yet.
  ///
  /// The kernel takes no more of the upload when key updates come. Between the first receive and the second one it takes
  /// the answers and all ciphertext before them, and the channel counts as writable. The next answers fail.
  @Test(.timeLimit(.minutes(1)), arguments: Way.allCases) mutating func anAnswerThatFails(way: Way) async throws {
    let (blocked, sent, failed) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    let (sends, receives) = (Shared(0), Shared(0))
    let kernel = CountingKernel {
      sends.value += 1
      guard sends.value > 8 else { return nil }
      blocked.fire()
      if receives.value == 0 { return -Int(Errno.wouldBlock.rawValue) }
      if receives.value == 1 { return .max }
      failed.fire()
      return -Int(Errno.connectionReset.rawValue)
    } replaceReceive: {
      guard blocked.hasFired else { return nil }
      Wait.blocking(until: "the messages are sent") { sent.hasFired }
      receives.value += 1
      return receives.value > 2 ? -Int(Errno.connectionReset.rawValue) : nil
    }
    client = try SecureClient(trusting: ca, on: kernel)
    // They fill the first receive, and a part of the second.
    let updates = TestServer.Step.updateKey(isRequested: true, times: 700)
    enqueue(way, .expectHead, .wait(blocked), updates, .fire(sent), .wait(failed), .reset)
    let error = await upload(20_000_000, way).error
    #expect(error == .connectionLost(.sending, .connectionReset))
  }

  /// An upload continues after key updates.
  @Test(arguments: Way.allCases) func newKeysMeanwhile(way: Way) async throws {
    enqueue(
      way, .expectHead, .updateKey(isRequested: true, times: 3), .expectBody, .send(Self.response), .expectClose)
    let outcome = await upload(5_000_000, way)
    #expect(outcome.error == nil)
    #expect(outcome.status == 200)
    #expect(server.failures == [])
    #expect(server.requests.last?.bodyCount == 5_000_000)
  }

  /// A large upload is complete when its last ciphertext has been sent, and the connection can be reused.
  @Test(arguments: Way.allCases) func uploadsAndTheNextRequest(way: Way) async throws {
    enqueue(way, .serveRoutes)
    try await client.loop.run { () async throws(TransportError) in
      let connection = try await open(way)
      defer { connection.close() }
      for count in [4_221_875, 1, 16_384, 100_000] {
        let exchange = try await connection.send(
          request("POST", "/post", body: count), body: [UInt8](repeating: 7, count: count))
        try await exchange.discardBody()
      }
    }
    #expect(server.connectionsAccepted == 1)
    #expect(server.requests.suffix(4).map(\.bodyCount) == [4_221_875, 1, 16_384, 100_000])
  }
}
