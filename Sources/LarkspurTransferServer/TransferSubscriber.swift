import LarkspurBytes
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// The program that is attached to a session: its socket, and the frames not yet sent.
final class TransferSubscriber: Sendable {
  private struct State {
    /// Frames that go before all notices.
    var frames: [[UInt8]] = []
    var sendQueue = SendQueue()
    /// The number of notices that have been taken from the sendQueue.
    var taken = 0
    /// The numbers of answered `flush` messages that have not been sent, each with the number of notices that go before it.
    var flushes: [(number: UInt64, after: Int)] = []

    mutating func next() -> TransferMessage? {
      if let first = flushes.first, first.after <= taken {
        flushes.removeFirst()
        return .flushed(first.number)
      }
      guard let notice = sendQueue.next() else { return nil }
      taken += 1
      return .notice(notice)
    }

    /// A program that does not read gets one answer for all that it has asked for meanwhile.
    mutating func add(flush number: UInt64) {
      let after = taken + sendQueue.count
      if let last = flushes.last, last.after >= after {
        flushes[flushes.count - 1].number = max(last.number, number)
      } else {
        flushes.append((number, after))
      }
    }
  }

  private let socket: BlockingSocket
  private let state = Mutex(State())
  private let writer: TransferWriter
  private let log: @Sendable (String) -> Void

  /// - Parameter questionTaken: Called for each question that has left the sendQueue, on the writer's thread.
  init(
    _ socket: BlockingSocket, log: @escaping @Sendable (String) -> Void, questionTaken: @escaping @Sendable () -> Void
  ) throws(Errno) {
    self.socket = socket
    self.log = log
    writer = TransferWriter(socket)
    // The thread keeps this object until `close`.
    try writer.start { [self] in nextFrame(questionTaken) }
  }

  private func nextFrame(_ questionTaken: () -> Void) -> [UInt8]? {
    while true {
      let (frame, message) = state.withLock { state -> ([UInt8]?, TransferMessage?) in
        if !state.frames.isEmpty { return (state.frames.removeFirst(), nil) }
        return (nil, state.next())
      }
      if let frame { return frame }
      guard let message else { return nil }
      if case .notice(.question) = message { questionTaken() }
      do throws(TransferValueError) {
        return try message.encoded()
      } catch {
        log("a notice was not sent: \(error)")
      }
    }
  }

  /// Sends the answer to `open`: the session's tasks. Called once, before the first notice.
  func send(_ records: [TransferRecord]) {
    do throws(TransferValueError) {
      let frames = try TransferMessage.frames(of: records) + [try TransferMessage.opened.encoded()]
      state.withLock { $0.frames = frames }
      writer.signal()
    } catch {
      refuse(.unavailable(reason: "\(error)"))
    }
  }

  /// Answers `open` with an error, and ends the connection.
  func refuse(_ error: TransferLinkError) {
    socket.refuse(error)
    close()
  }

  /// Sends a notice. Does not block.
  func send(_ notice: TransferNotice) {
    state.withLock { _ = $0.sendQueue.add(notice) }
    writer.signal()
  }

  /// Answers a `flush`, and all before it, behind the notices so far.
  func sendFlushed(_ number: UInt64) {
    state.withLock { $0.add(flush: number) }
    writer.signal()
  }

  /// Whether the program has gone, although its end may not have been read.
  var hasGone: Bool { socket.waitForPeerEnd(until: LinuxKernel.shared.now()) }

  /// Ends the connection. Does not wait for a program that does not read.
  func close() {
    socket.shutDown()
    writer.stop()
  }
}

extension BlockingSocket {
  /// Sends a refusal. A program that does not read is not waited for.
  func refuse(_ error: TransferLinkError) {
    guard let frame = try? TransferMessage.refused(error).encoded() else { return }
    _ = try? sendNow(frame.span)
  }
}
