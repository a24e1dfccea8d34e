import LarkspurIO
import LarkspurTransfers
import Synchronization

/// The program that is attached to a session: its socket, and what it is still to be sent.
final class TransferSubscriber: Sendable {
  private struct State {
    /// Frames that go before all notices.
    var frames: [[UInt8]] = []
    var outbox = TransferOutbox()
    /// The largest number of an answered `flush` that has not been sent.
    var flushed: UInt64?
  }

  private let socket: BlockingSocket
  private let state: Box
  private let writer: TransferWriter

  private final class Box: Sendable {
    let state = Mutex(State())
    let log: @Sendable (String) -> Void

    init(log: @escaping @Sendable (String) -> Void) { self.log = log }

    func next() -> [UInt8]? {
      while true {
        let (frame, message) = state.withLock { state -> ([UInt8]?, TransferMessage?) in
          if !state.frames.isEmpty { return (state.frames.removeFirst(), nil) }
          defer { state.flushed = nil }
          return (nil, state.flushed.map { .flushed($0) } ?? state.outbox.next().map { .notice($0) })
        }
        if let frame { return frame }
        guard var message else { return nil }
        if case .notice(.changed(var record)) = message, record.leaveOutParts() { message = .notice(.changed(record)) }
        do throws(TransferMessageError) {
          return try message.encoded()
        } catch {
          log("a notice was not sent: \(error)")
        }
      }
    }
  }

  init(_ socket: BlockingSocket, log: @escaping @Sendable (String) -> Void) throws(Errno) {
    let box = Box(log: log)
    self.socket = socket
    state = box
    writer = TransferWriter(socket) { box.next() }
    try writer.start(name: "transfers-write")
  }

  /// Sends the answer to `open`: the session's tasks. Called once, before the first notice.
  func send(_ records: [TransferRecord]) throws(TransferMessageError) {
    let frames = try TransferMessage.frames(of: records) + [try TransferMessage.opened.encoded()]
    state.state.withLock { $0.frames = frames }
    writer.signal()
  }

  /// Sends a notice. Does not block.
  ///
  /// - Returns: `false` if the notice is a question and the program does not read.
  func send(_ notice: TransferNotice) -> Bool {
    let isTaken = state.state.withLock { $0.outbox.add(notice) }
    if isTaken { writer.signal() }
    return isTaken
  }

  /// Answers a `flush`, and all before it.
  func sendFlushed(_ number: UInt64) {
    state.state.withLock { $0.flushed = max($0.flushed ?? 0, number) }
    writer.signal()
  }

  /// Ends the connection. Does not wait for a program that does not read.
  func close() {
    socket.shutDown()
    writer.stop()
  }
}
