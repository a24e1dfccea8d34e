import Foundation
import Glibc
import Larkspur
import LarkspurIO
import LarkspurTestServer
import Testing

/// Tests options of a session's connections with a real peer.
@Suite(.timeLimit(.minutes(1))) struct NetworkOptionTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private final class MetricsDelegate: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    // Sendable: written before the load's result is there.
    var metrics: URLSessionTaskMetrics?

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
      self.metrics = metrics
    }
  }

  /// Loads a URL, and returns the metrics of its transaction.
  private func load(
    port: Int? = nil, _ change: (URLSessionConfiguration) throws -> Void
  ) async throws -> URLSessionTaskTransactionMetrics {
    let configuration = URLSessionConfiguration.ephemeral
    try change(configuration)
    return try await URLSession.withSession(configuration: configuration) { session in
      let delegate = MetricsDelegate()
      let url = try #require(URL(string: "http://127.0.0.1:\(port ?? Int(server.port))/bytes/100000"))
      let (data, _) = try await session.data(from: url, delegate: delegate)
      #expect(data.count == 100_000)
      return try #require(delegate.metrics?.transactionMetrics.last)
    }
  }

  private func error(_ change: (URLSessionConfiguration) throws -> Void) async throws -> String {
    let accepted = server.connectionsAccepted
    let error = await #expect(throws: URLError.self) { _ = try await load(change) }
    #expect(error?.code == .cannotConnectToHost)
    #expect(server.connectionsAccepted == accepted)
    return error?.localizedDescription ?? ""
  }

  // MARK: - The local end

  @Test func anAddressOfTheMachine() async throws {
    let local = try LocalEndpoint(address: "127.0.0.5")
    #expect(try await load { $0.localEndpoint = local }.localAddress == "127.0.0.5")
    #expect(try await load { $0.localEndpoint = LocalEndpoint(interface: "lo") }.localAddress == "127.0.0.1")
  }

  @Test func anEndThatTheMachineLacks() async throws {
    #expect(
      try await error { $0.localEndpoint = LocalEndpoint(interface: "nosuch0") }.contains("localEndpoint nosuch0"))
    #expect(
      try await error { $0.localEndpoint = try LocalEndpoint(address: "203.0.113.1") }
        .contains("localEndpoint 203.0.113.1"))
  }

  // MARK: - Rates

  @Test func ratesLoseNoBytes() async throws {
    _ = try await load {
      $0.rateLimits.bytesPerSecond = 10_000_000
      $0.rateLimits.bytesPerSecondPerHost = 10_000_000
      $0.rateLimits.requestsPerSecondPerHost = 100
    }
    #expect(try await error { $0.rateLimits.bytesPerSecondPerHost = 0 }.contains("rateLimits.bytesPerSecondPerHost"))
  }

  // MARK: - Several paths

  /// A server that has multipath TCP, or TCP where the kernel has none, and answers one request.
  private func multipathServer() throws -> (port: Int, hasMultipath: Bool) {
    let multipath = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 262)
    let listener = multipath >= 0 ? multipath : socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    try #require(isListening)
    let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".utf8) + [UInt8](repeating: 0, count: 100_000)
    try SystemThread(name: "multipath") {
      let peer = accept(listener, nil, nil)
      var request = [UInt8](repeating: 0, count: 4096)
      if read(peer, &request, request.count) > 0 {
        var sent = 0
        while sent < answer.count {
          let count = answer[sent...].withUnsafeBytes {
            send(peer, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
          }
          guard count > 0 else { break }
          sent += count
        }
      }
      while read(peer, &request, request.count) > 0 {}
      close(peer)
      close(listener)
    }.detach()
    return (Int(UInt16(bigEndian: address.sin_port)), multipath >= 0)
  }

  @Test func multipath() async throws {
    let peer = try multipathServer()
    let metrics = try await load(port: peer.port) { $0.multipathServiceType = .aggregate }
    #expect(metrics.isMultipath == peer.hasMultipath)
    // The test server has TCP only.
    #expect(try await !load { $0.multipathServiceType = .handover }.isMultipath)
    #expect(try await !load { _ in }.isMultipath)
  }
}
