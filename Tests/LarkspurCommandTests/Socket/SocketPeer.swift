import LarkspurCommand
import LarkspurHTTP
import LarkspurTestServer
import Synchronization

/// A WebSocket server whose connections all do the same work, and the frames that they have received.
final class SocketPeer: Sendable {
  /// Notes what a connection receives.
  final class Record: Sendable {
    private let list = Mutex<[WebSocketServer.Frame]>([])

    var frames: [WebSocketServer.Frame] { list.withLock { $0 } }

    func add(_ frame: WebSocketServer.Frame) { list.withLock { $0.append(frame) } }
  }

  /// One connection. Calls block its thread.
  struct Connection {
    let conversation: WebSocketServer.Conversation
    fileprivate let record: Record

    func receive() throws -> WebSocketServer.Frame? {
      let frame = try conversation.receive()
      if let frame { record.add(frame) }
      return frame
    }

    func send(_ frames: WebSocketServer.Frame...) throws { for frame in frames { try conversation.send(frame) } }

    /// Sends each message back, answers pings and the Close, and ends with the Close.
    func echo() throws {
      while let frame = try receive() {
        try send(frame.opcode == .ping ? WebSocketServer.Frame(.pong, frame.payload) : frame)
        if frame.opcode == .close { return }
      }
    }

    /// Receives to the end of the stream.
    func drain() throws { while try receive() != nil {} }
  }

  private let server: WebSocketServer
  private let record: Record

  init(_ work: @escaping @Sendable (Connection) throws -> Void) throws {
    let record = Record()
    self.record = record
    server = try WebSocketServer { try work(Connection(conversation: $0, record: record)) }
  }

  deinit { server.stop() }

  var frames: [WebSocketServer.Frame] { record.frames }
  var authority: String { "127.0.0.1:\(server.port)" }
  var url: String { server.url("/chat") }

  /// Runs `larkspur socket` with this input.
  func run(
    _ arguments: String..., input: [UInt8] = [], output: Command.Stream = .collected
  ) async throws -> Command.Result {
    try await Command(["socket", url] + arguments, output: output).end(input: input)
  }
}
