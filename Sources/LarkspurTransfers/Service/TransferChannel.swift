import LarkspurBytes
import LarkspurIO
import Synchronization

/// The reason for which a connection between a program and the service ends.
package enum TransferChannelError: Error, Hashable, Sendable {
  case broken(Errno)
  case message(TransferValueError)
  /// The peer ended the connection within a message.
  case cutOff
}

extension TransferChannelError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .broken(let error): "the connection broke: \(error)"
    case .message(let error): "\(error)"
    case .cutOff: "the connection ended within a message"
    }
  }
}

/// Reads a peer's messages, on one thread.
package struct TransferReader {
  private static let pieceBytes = 64 << 10

  let socket: BlockingSocket
  /// The time until which `next` waits.
  package var deadline: Deadline
  private var parser = TransferFrameParser()

  package init(_ socket: BlockingSocket, until deadline: Deadline = .never) {
    self.socket = socket
    self.deadline = deadline
  }

  /// Returns the next message, or `nil` at the end of the connection. Blocks until either arrives, and throws
  /// `broken(.timedOut)` at the deadline.
  package mutating func next() throws(TransferChannelError) -> TransferMessage? {
    while true {
      do throws(TransferValueError) {
        if let frame = try parser.next() { return try TransferMessage(frame) }
      } catch {
        throw .message(error)
      }
      let piece: [UInt8]
      do throws(Errno) {
        piece = try socket.receive(atMost: Self.pieceBytes, until: deadline)
      } catch .connectionReset {
        // The peer was killed with bytes unread.
        return nil
      } catch {
        throw .broken(error)
      }
      guard !piece.isEmpty else {
        guard parser.isBetweenFrames else { throw .cutOff }
        return nil
      }
      parser.append(piece)
    }
  }
}

/// Sends frames on a dedicated thread, so that a peer that does not read delays no other thread.
package final class TransferWriter: Sendable {
  private let socket: BlockingSocket
  private let wakeUp = WakeUp()
  private let end = Atomic(0)

  package init(_ socket: BlockingSocket) { self.socket = socket }

  /// Starts the thread. `stop` and `finish` end it, and release the function.
  ///
  /// - Parameter next: Returns the next frame, or `nil` if there is none at the moment.
  package func start(_ next: @escaping @Sendable () -> [UInt8]?) throws(Errno) {
    try SystemThread(name: "transfers-write") { [self] in run(next) }.detach()
  }

  /// Makes the thread send all frames that there are.
  package func signal() { wakeUp.signal() }

  /// Makes the thread send all frames that there are, end the sending side of the socket, and end itself.
  package func finish() { stop(1) }

  /// Makes the thread send all frames that there are, shut the socket down, and end.
  package func stop() { stop(2) }

  private func stop(_ kind: Int) {
    _ = end.max(kind, ordering: .releasing)
    wakeUp.signal()
  }

  private func run(_ next: () -> [UInt8]?) {
    while true {
      wakeUp.wait()
      // Read before the frames: a frame that was added before `stop` is sent.
      let end = end.load(ordering: .acquiring)
      while let frame = next() {
        do throws(Errno) { try socket.send(frame) } catch { return socket.shutDown() }
      }
      if end == 1 { return socket.shutDownWriting() }
      if end == 2 { return socket.shutDown() }
    }
  }
}

/// A semaphore that threads share. Its holder wakes one thread.
public final class WakeUp: Sendable {
  private let semaphore = Semaphore()

  public init() {}

  /// Ends the current `wait`, or else the next one. May be called on any thread.
  public func signal() { semaphore.put() }

  /// Blocks until a signal that no earlier call has taken, or until the deadline. All signals so far are taken.
  public func wait(until deadline: Deadline = .never) {
    if semaphore.take(until: deadline) { semaphore.takeAll() }
  }
}
