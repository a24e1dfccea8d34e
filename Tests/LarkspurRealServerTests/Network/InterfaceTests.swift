import Foundation
import LarkspurTransport
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Connections that begin at one of two interfaces, over both of which the server can be reached.
@Suite(.timeLimit(.minutes(1)), .ownThread, .ownProcess) struct InterfaceTests {
  @Test func theInterfaceOfAConnection() async throws {
    let hosts = try TwoHosts()
    try hosts.client.connect(to: hosts.server, by: "second")
    for (host, number) in [(hosts.client, 1), (hosts.server, 2)] {
      try host.ip("address add 10.8.0.\(number)/24 dev second", "link set second up")
    }
    // The first cable's route has precedence.
    try hosts.client.ip("route add 10.9.0.0/24 dev second metric 100")
    let server = try hosts.server.run { try PythonServer("Tests/LivePeers/multipath_server.py", ["tcp"]) }
    let url = try #require(URL(string: "http://10.9.0.2:\(server.port)/"))
    let loop = try hosts.client.run { try ClientLoop() }
    defer { loop.stop() }
    for (interface, address) in [(nil, "10.9.0.1"), ("second", "10.8.0.1"), ("cable", "10.9.0.1")] {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.connectionProxyDictionary = [:]
      configuration.localEndpoint = interface.map { LocalEndpoint(interface: $0) }
      configuration.storage.loop = loop
      let delegate = MetricsRecorder()
      let status = try await URLSession.withSession(configuration: configuration) {
        try await $0.load(url, delegate: delegate).status
      }
      #expect(status == 200)
      #expect(delegate.metrics.withLock { $0 }?.transactionMetrics.last?.localAddress == address)
    }
  }
}
