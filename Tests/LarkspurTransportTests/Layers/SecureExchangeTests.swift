import Foundation
import Glibc
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// Successful requests over TLS.
@Suite struct SecureExchangeTests {
  static func server(
    _ ca: TestCA, _ change: (inout TestServer.TLS) throws -> Void = { _ in }
  ) throws -> TestServer {
    var tls = TestServer.TLS(certificate: try ca.issue())
    try change(&tls)
    return try TestServer(tls: tls)
  }

  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3], ["localhost", "127.0.0.1", "LOCALHOST."])
  func oneRequest(version: TestServer.TLS.Version, host: String) async throws {
    let ca = try TestCA()
    let server = try Self.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca)
    let outcome = await client.get(from: server, host: host)
    #expect(outcome.error == nil)
    #expect(outcome.status == 200)
    #expect(outcome.handshake?.version == (version == .tls1_2 ? .tls12 : .tls13))
    #expect(outcome.handshake?.trust.verified.count == 2)
    let seen = try #require(server.handshakes.first)
    // RFC 6066 3: SNI has no addresses, and no trailing dot.
    #expect(seen.serverName == (host == "127.0.0.1" ? nil : "localhost"))
    #expect(seen.alpnOffered == ["http/1.1"])
    #expect(seen.asksForStaple)
  }

  /// Bodies of several sizes in records of several sizes, in both directions.
  @Test(arguments: [1, 511, 16_384], [0, 1, 16_383, 16_384, 16_385, 1_000_000])
  func bodies(recordBytes: Int, count: Int) async throws {
    let ca = try TestCA()
    let server = try Self.server(ca) { $0.recordBytesMax = recordBytes }
    // One record per byte is slow, so the body is smaller.
    let count = recordBytes == 1 ? min(count, 20_000) : count
    let client = try SecureClient(trusting: ca)
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    let upload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let received = try await loop.run { () async throws(TransportError) in
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      defer { connection.close() }
      let exchange = try await connection.send(request("POST", "/post", body: count), body: upload)
      try await exchange.discardBody()
      return try await connection.send(request("GET", "/bytes/\(count)")).collectBody(bytesMax: 2_000_000)
    }
    #expect(server.requests.first?.body == upload)
    #expect(received == TestServer.content(0..<count))
  }

  /// The handshake's last flight waits for a request only until the end of the tick.
  @Test func aHandshakeWithoutARequest() async throws {
    let ca = try TestCA()
    let server = try Self.server(ca) { $0.versions = .tls1_3 ... .tls1_3 }
    let client = try SecureClient(trusting: ca)
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    try await loop.run {
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      #expect(try await server.waitForHandshakes(1).first?.failure == nil)
      connection.close()
    }
  }

  @Test func manyRequestsOverOneConnection() async throws {
    let ca = try TestCA()
    let server = try Self.server(ca)
    let client = try SecureClient(trusting: ca)
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    try await loop.run { () async throws(TransportError) in
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      defer { connection.close() }
      for _ in 0..<100 { try await connection.send(request("GET", "/bytes/100")).discardBody() }
    }
    #expect(server.connectionsAccepted == 1)
    #expect(server.requestsReceived == 100)
    try await server.waitForClosedConnections(1)
    // An orderly end sends close_notify, and no other alert.
    #expect(server.handshakes.first?.alertsReceived.map(\.number) == [0])
  }

  /// RFC 8446 6.1: an attacker may have caused an end of the stream without close_notify. The end of a body is accepted
  /// if its framing shows it.
  @Test(
    arguments: [
      ("Content-Length: 5\r\n\r\nhello", nil), ("Content-Length: 10\r\n\r\nhello", false),
      ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", nil),
      ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false), ("Connection: close\r\n\r\nhello", true),
    ] as [(String, Bool?)])
  func theEndWithoutFarewell(rest: String, isTruncationOfTLS: Bool?) async throws {
    let ca = try TestCA()
    let server = try Self.server(ca)
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\n" + rest), .closeWithoutNotify])
    let outcome = try await SecureClient(trusting: ca).get(from: server)
    #expect(outcome.body == Array("hello".utf8))
    switch isTruncationOfTLS {
    case nil: #expect(outcome.error == nil)
    case true?: #expect(outcome.problem == .truncated)
    case false?:
      let isCut = if case .badResponse(.truncated)? = outcome.error { true } else { false }
      #expect(isCut, "\(String(describing: outcome.error))")
    }
  }

  /// A stray response that arrived before the connection broke does not answer a request of which nothing was sent.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func aStrayAnswerInFrontOfAReset(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try Self.server(ca) { $0.versions = version...version }
    let mayGoOn = TestServer.Signal()
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    server.enqueue([.expectRequest, .send(answer), .wait(mayGoOn), .send(answer), .reset])
    let client = try SecureClient(trusting: ca)
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    let error = try await loop.run { () async throws(TransportError) -> TransportError? in
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      defer { connection.close() }
      try await connection.send(request("GET", "/1")).discardBody()
      mayGoOn.fire()
      // The loop does not see this, because the test runs on its thread.
      Wait.blocking(until: "the socket is closed") { !Self.isConnected(to: port) }
      do throws(TransportError) {
        try await connection.send(request("GET", "/2")).discardBody()
        return nil
      } catch {
        return error
      }
    }
    #expect(error == .connectionClosed)
  }

  /// Returns whether a socket of this process is connected to `port`. After the other side has closed, its reset may
  /// still be on its way.
  private static func isConnected(to port: UInt16) -> Bool {
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    if descriptors.isEmpty { Issue.record("The descriptors cannot be listed.") }
    return descriptors.compactMap(Int32.init).contains { descriptor in
      var address = sockaddr_in()
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let result = withUnsafeMutableBytes(of: &address) { bytes in
        getpeername(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), &size)
      }
      return result == 0 && address.sin_family == AF_INET && address.sin_port == port.bigEndian
    }
  }

  /// A close_notify that arrives with a response is noticed before the next request is sent.
  @Test func farewellToAnIdleConnection() async throws {
    let ca = try TestCA()
    let server = try Self.server(ca)
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), .closeNotify, .expectClose,
    ])
    let client = try SecureClient(trusting: ca)
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    let error = try await loop.run { () async throws(TransportError) -> TransportError? in
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      defer { connection.close() }
      let exchange = try await connection.send(request())
      try await exchange.discardBody()
      // Repeats until the close_notify has arrived, too: the connection is read only on request.
      do throws(TransportError) {
        while true { try await connection.send(request()).discardBody() }
      } catch {
        return error
      }
    }
    let isEnd =
      switch error {
      case .connectionClosed?, .badResponse(.truncated(.beforeHead))?, .connectionLost?: true
      default: false
      }
    #expect(isEnd, "\(String(describing: error))")
  }

  @Test func theEndWithFarewell() async throws {
    let ca = try TestCA()
    let server = try Self.server(ca)
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\n\r\nhello"), .closeNotify, .reset])
    let outcome = try await SecureClient(trusting: ca).get(from: server)
    #expect(outcome.error == nil)
    #expect(outcome.body == Array("hello".utf8))
  }
}
