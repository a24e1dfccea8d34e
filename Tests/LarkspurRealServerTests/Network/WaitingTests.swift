import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// Sessions that wait for connectivity (`waitsForConnectivity`) on a machine whose network comes and goes. The session
/// is in a process of its own on that machine.
@Suite(.serialized, .timeLimit(.minutes(2)), .ownThread, .ownProcess) struct WaitingTests {
  let hosts: TwoHosts

  init() throws { hosts = try TwoHosts() }

  private func start(
    _ name: String, _ url: String, seconds: Int = 0, says text: String
  ) throws -> ServerProcess {
    let program = try SiblingProcess.program("TestHelper").path
    return try hosts.client.run {
      try ServerProcess(program, ["connectivity", name, url, "\(seconds)"], readyText: text)
    }
  }

  @Test func theLinkComes() async throws {
    let server = try hosts.start()
    try hosts.client.ip("link set cable down")
    let probe = try start("waits", "http://10.9.0.2:\(server.port)/get", says: "waiting")
    #expect(server.connectionsAccepted == 0)
    try hosts.client.ip("link set cable up")
    try await server.waitForRequests(1)
    probe.wait()
  }

  /// If the first change of the network does not help, the task continues to wait, and does not report that again.
  @Test func theRouteComesLater() async throws {
    let server = try hosts.start()
    try hosts.client.ip("link set cable down", "address flush dev cable")
    let probe = try start("waits", "http://10.9.0.2:\(server.port)/get", says: "waiting")
    try hosts.client.ip("link set cable up")
    try hosts.client.ip("address add 10.8.0.1/24 dev cable")
    try hosts.client.ip("address add 10.9.0.1/24 dev cable")
    try await server.waitForRequests(1)
    probe.wait()
  }

  /// The timeout for the whole request continues during the wait.
  @Test func theNetworkDoesNotCome() throws {
    try hosts.client.ip("link set cable down")
    let probe = try start("waits", "http://10.9.0.2:9/get", seconds: 1, says: "failed -1001")
    #expect(probe.greeting.hasPrefix("waiting\n"))
    probe.wait()
  }

  @Test func aTaskThatDoesNotWaitFails() throws {
    try hosts.client.ip("link set cable down")
    let probe = try start("impatient", "http://10.9.0.2:9/get", says: "failed")
    #expect(!probe.greeting.contains("waiting"))
    probe.wait()
  }

  /// If there is a network and a machine that refuses the connection, the task fails instead of waiting.
  @Test func aRefusalIsAnAnswer() throws {
    let probe = try start("waits", "http://10.9.0.2:9/get", says: "failed -1004")
    #expect(!probe.greeting.contains("waiting"))
    probe.wait()
  }

  @Test func loopbackNeedsNoNetwork() throws {
    try hosts.client.ip("link set cable down")
    let server = try hosts.client.run { try TestServer() }
    let probe = try start("waits", server.url("/get"), says: "status 200")
    #expect(!probe.greeting.contains("waiting"))
    probe.wait()
  }
}
