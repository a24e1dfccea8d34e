import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Testing

@testable import Larkspur

/// Tests which failures make a task with `waitsForConnectivity` wait.
@Suite struct NetworkAbsenceTests {
  let here = SocketAddress.loopback(port: 80)
  let there = SocketAddress.ipv4(0xc633_6401, port: 80)

  private func failed(_ errors: Errno...) -> TransportError {
    .connectFailed(errors.map { TransportError.Attempt(address: there, error: $0) })
  }

  @Test func noWay() {
    #expect(NetworkAbsence(failed(.networkUnreachable)) == .noWay([there]))
    #expect(NetworkAbsence(failed(.hostUnreachable, .networkDown)) == .noWay([there, there]))
    #expect(NetworkAbsence(.resolutionFailed(host: "a.example", reason: "")) == .noName)
  }

  @Test func errorsOfAReachableServer() {
    for error in [
      failed(.connectionRefused), failed(.networkUnreachable, .connectionRefused), failed(.timedOut), failed(),
      .connectionLost(.awaitingHead, .connectionReset), .timedOut(.connecting), .cancelled, .connectionClosed,
    ] {
      #expect(NetworkAbsence(error) == nil, "\(error)")
    }
  }

  @Test func throughAProxy() throws {
    let proxy = try Proxy("http://proxy.example:3128")
    #expect(NetworkAbsence(.proxy(ProxyError(proxy, .transport(failed(.networkUnreachable))))) == .noWay([there]))
    #expect(NetworkAbsence(.proxy(ProxyError(proxy, .transport(failed(.connectionRefused))))) == nil)
  }

  @Test func whatCanBeReachedIsNoAbsence() {
    let monitor = ConnectivityMonitor()
    #expect(!NetworkAbsence.noWay([here]).holds(monitor))
    #expect(!NetworkAbsence.noWay([there, here]).holds(monitor))
  }

  /// Background sessions always wait for connectivity, as Apple documents.
  @Test func sessionsThatWait() {
    func waits(_ configuration: URLSessionConfiguration) -> Bool {
      SessionCore(configuration, delegate: nil, queue: nil).waitsForNetwork
    }
    #expect(!waits(.default) && !waits(.ephemeral) && waits(.background(withIdentifier: "transfers")))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.waitsForConnectivity = true
    #expect(waits(configuration))
  }
}
