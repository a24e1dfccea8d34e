import Foundation
import LarkspurTransport
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Multipath TCP between two machines with two cables, and TCP where one of the machines has none.
@Suite(.serialized, .timeLimit(.minutes(2)), .ownThread, .ownProcess) struct MultipathTests {
  let hosts: TwoHosts

  init() throws {
    hosts = try TwoHosts()
    guard try hosts.server.multipathCount("MPJoinAckRx") != nil else {
      try Test.cancel("the kernel has no multipath TCP")
    }
    try hosts.client.connect(to: hosts.server, by: "second")
    for (host, number) in [(hosts.client, 1), (hosts.server, 2)] {
      try host.ip(
        "address add 10.8.0.\(number)/24 dev second", "link set second up",
        "mptcp limits set subflows 2 add_addr_accepted 2")
    }
    try hosts.server.ip("mptcp endpoint add 10.8.0.2 dev second signal")
  }

  private final class MetricsDelegate: NSObject, URLSessionTaskDelegate {
    let metrics = Mutex<URLSessionTaskTransactionMetrics?>(nil)

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
      self.metrics.withLock { $0 = metrics.transactionMetrics.last }
    }
  }

  private func start(_ kind: String) throws -> PythonServer {
    try hosts.server.run { try PythonServer("Tests/LivePeers/multipath_server.py", [kind]) }
  }

  /// Loads from the server as the client's machine, and returns the metrics.
  private func load(_ session: URLSession, _ server: PythonServer) async throws -> URLSessionTaskTransactionMetrics {
    let delegate = MetricsDelegate()
    let url = try #require(URL(string: "http://10.9.0.2:\(server.port)/"))
    let (data, _) = try await session.data(from: url, delegate: delegate)
    #expect(data.count == 100_000)
    return try #require(delegate.metrics.withLock { $0 })
  }

  /// Runs a closure with a session of the client's machine.
  private func withSession<Value>(
    _ type: URLSessionConfiguration.MultipathServiceType, _ body: (URLSession) async throws -> Value
  ) async throws -> Value {
    let loop = try hosts.client.run { try ClientLoop() }
    defer { loop.stop() }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [:]
    configuration.multipathServiceType = type
    configuration.storage.loop = loop
    return try await URLSession.withSession(configuration: configuration) { try await body($0) }
  }

  private func isMultipath(_ type: URLSessionConfiguration.MultipathServiceType, _ kind: String) async throws -> Bool {
    let server = try start(kind)
    return try await withSession(type) { try await load($0, server).isMultipath }
  }

  /// A connection survives the loss of the link that it was made over.
  @Test func theSecondLinkCarriesOn() async throws {
    let server = try start("multipath")
    try await withSession(.handover) { session in
      let first = try await load(session, server)
      #expect(first.isMultipath)
      try await Wait.until("there is a second path") { try hosts.server.multipathCount("MPJoinAckRx") == 1 }
      try hosts.client.ip("link set cable down")
      let second = try await load(session, server)
      #expect(second.isMultipath && second.isReusedConnection)
    }
  }

  /// The kernel asks for multipath TCP, and the server does not answer that.
  @Test func aServerWithoutMultipath() async throws {
    #expect(try await !isMultipath(.aggregate, "tcp"))
    #expect(try hosts.client.multipathCount("MPCapableSYNTX") == 1)
  }

  @Test func aKernelWithoutMultipath() async throws {
    try hosts.client.set("mptcp/enabled", to: "0")
    #expect(try await !isMultipath(.aggregate, "multipath"))
    #expect(try hosts.client.multipathCount("MPCapableSYNTX") == 0)
  }

  @Test func withoutTheOption() async throws {
    #expect(try await !isMultipath(.none, "multipath"))
    #expect(try hosts.client.multipathCount("MPCapableSYNTX") == 0)
  }
}
