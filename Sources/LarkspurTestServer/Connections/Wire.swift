import LarkspurBytes
import LarkspurIO

/// What a connection's thread does with its socket: reads through a buffer, writes, ends.
///
/// Confined to that thread. The server keeps a second reference to the socket, to interrupt it.
final class Wire {
  /// Why bytes do not flow any more.
  enum Failure: Error {
    /// The peer has ended its sending side, or the server is stopping.
    case ended
    /// The connection broke, usually because the peer has gone.
    case broken(Errno)
    /// This side has closed it already.
    case closed
  }

  private static let receiveBytesMax = 1 << 16

  private var socket: BlockingSocket?
  /// Gives up the server's reference to the socket, so that the last one here closes it.
  private let forget: () -> Void
  private var buffer: [UInt8] = []
  private var position = 0
  private(set) var hasHalfClosed = false

  init(_ socket: consuming BlockingSocket, forget: @escaping () -> Void) {
    // A piece that a script sends is to leave as a segment of its own, now.
    socket.setNoDelay()
    self.socket = socket
    self.forget = forget
  }

  var isOpen: Bool { socket != nil }

  // MARK: Reading

  /// The bytes that have arrived and are not taken yet: at least one more than before.
  private func fill() throws(Failure) {
    let bytes = try receive()
    guard !bytes.isEmpty else { throw .ended }
    if position == buffer.count {
      buffer = bytes
    } else {
      buffer.removeSubrange(..<position)
      buffer.append(contentsOf: bytes)
    }
    position = 0
  }

  private func receive() throws(Failure) -> [UInt8] {
    guard let socket else { throw .closed }
    do {
      return try socket.receive(atMost: Self.receiveBytesMax)
    } catch {
      throw .broken(error)
    }
  }

  /// The next bytes, at least one.
  func take(atMost count: Int) throws(Failure) -> ArraySlice<UInt8> {
    if position == buffer.count { try fill() }
    let taken = buffer[position..<min(position + count, buffer.count)]
    position = taken.endIndex
    return taken
  }

  /// Looks at the next byte.
  func peek() throws(Failure) -> UInt8 {
    if position == buffer.count { try fill() }
    return buffer[position]
  }

  /// Everything up to a line feed and with it. Nil if that is more than `count` bytes. `partial` tells how much of the
  /// line there was when the peer ended.
  func takeLine(atMost count: Int, partial: inout Int) throws(Failure) -> ArraySlice<UInt8>? {
    var searched = 0
    while true {
      if let end = buffer[(position + searched)...].firstIndex(of: UInt8(ascii: "\n")) {
        guard end - position < count else { return nil }
        let line = buffer[position...end]
        position = end + 1
        return line
      }
      searched = buffer.count - position
      partial = searched
      guard searched < count else { return nil }
      try fill()
    }
  }

  /// Reads and forgets until the peer ends its side.
  func drain() {
    buffer = []
    position = 0
    while let bytes = try? receive(), !bytes.isEmpty {}
  }

  // MARK: Writing

  func send(_ bytes: [UInt8]) throws(Failure) { try send(bytes.span) }

  func send(_ bytes: Span<UInt8>) throws(Failure) {
    guard let socket else { throw .closed }
    do {
      try socket.send(bytes)
    } catch {
      throw .broken(error)
    }
  }

  func setSendBuffer(bytes: Int) { socket?.setSendBuffer(bytes: bytes) }

  // MARK: Ends

  /// Tells the peer that no more bytes come (FIN), and goes on reading.
  func halfClose() {
    hasHalfClosed = true
    socket?.shutDownWriting()
  }

  /// Closes it (FIN). What has arrived until now is read first: the kernel answers a close over unread bytes with a reset.
  func close() {
    guard let socket else { return }
    socket.shutDownWriting()
    while socket.isReadable, let bytes = try? receive(), !bytes.isEmpty {}
    release()
  }

  /// Closes when the peer does. So the peer certainly reads all that was sent: no reset of ours can overtake it.
  func closeAfterPeer() {
    guard isOpen else { return }
    halfClose()
    drain()
    release()
  }

  /// Aborts it (RST).
  func reset() {
    socket?.resetOnClose()
    release()
  }

  private func release() {
    socket = nil
    forget()
  }

  /// Blocks until the peer has ended its side, or the connection broke, or the server stops; reads nothing.
  /// False: the deadline came first.
  func waitForPeerEnd(until deadline: Deadline = .never) throws(Failure) -> Bool {
    guard let socket else { throw .closed }
    return socket.waitForPeerEnd(until: deadline)
  }
}
