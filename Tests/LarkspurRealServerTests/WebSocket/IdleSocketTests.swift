import Foundation
import TestKit
import Testing

/// The memory of WebSockets that do nothing, in a process of its own.
@Suite(.ownThread) struct IdleSocketTests {
  /// The number of connections. `TestHelper idle-sockets` measures any other number.
  private static let connections = 2000
  /// Maximum growth of the resident memory in bytes for each connection.
  private static let bytesPerConnectionMax = 7_000

  @Test func memory() throws {
    let server = try PythonServer("Tests/LivePeers/idle_server.py")
    let figures = try SiblingProcess(
      "idle-sockets", ["ws://127.0.0.1:\(server.port)/", "\(Self.connections)"]
    ).numbers()
    try #require(figures.count == 2)
    print("\(Self.connections) idle WebSockets: \(figures[0]) bytes resident for each")
    #expect(figures[0] <= Self.bytesPerConnectionMax)
    // Each of them still answers a ping.
    #expect(figures[1] == Self.connections)
  }
}
