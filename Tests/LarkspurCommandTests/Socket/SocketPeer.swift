import LarkspurCommand
import LarkspurTestServer

/// A server whose WebSockets all do the same steps, and the frames that it has received.
final class SocketPeer: Sendable {
  private let server: TestServer

  init(
    _ steps: [TestServer.WebSocketStep], answer: TestServer.WebSocketAnswer = TestServer.WebSocketAnswer()
  ) throws {
    server = try TestServer()
    server.webSocket("/chat", steps, answer: answer)
  }

  /// The frames without their masks.
  var frames: [TestServer.WebSocketFrame] {
    server.webSockets.flatMap(\.frames).map { frame in
      var frame = frame
      frame.mask = nil
      return frame
    }
  }

  /// The fields of the latest opening handshake.
  var fields: TestServer.Fields { server.webSockets.last?.request.fields ?? [:] }
  /// The expectations of the steps that have not been met.
  var failures: [String] { server.failures }
  var authority: String { server.authority }
  var url: String { server.webSocketURL("/chat") }

  /// Suspends until the server has closed a connection, behind its last step.
  func waitForEnd() async throws { try await server.waitForClosedConnections(1) }

  /// Runs `larkspur socket` with this input.
  func run(
    _ arguments: String..., input: [UInt8] = [], output: Command.Stream = .collected
  ) async throws -> Command.Result {
    try await Command(["socket", url] + arguments, output: output).end(input: input)
  }
}

extension TestServer.WebSocketFrame {
  /// Creates a Close frame with a code and without a reason.
  static func close(_ code: UInt16) -> Self { Self(.close, [UInt8(code >> 8), UInt8(code & 0xff)]) }
}
