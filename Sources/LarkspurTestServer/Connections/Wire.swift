import LarkspurBytes
import LarkspurIO

/// What a connection's thread does with its socket: reads through a buffer, writes, ends. TLS may stand in between.
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
    /// TLS has failed, in words.
    case insecure(String)
  }

  private static let receiveBytesMax = 1 << 16

  private var socket: BlockingSocket?
  /// Gives up the server's reference to the socket, so that the last one here closes it.
  private let forget: () -> Void
  private var buffer: [UInt8] = []
  private var position = 0
  private(set) var hasHalfClosed = false
  /// TLS, the lowest layer first. None: bytes go to the socket as they are.
  private var layers: [TLSLayer] = []
  var fault = SendFault()

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

  private func receive() throws(Failure) -> [UInt8] { try receive(above: layers.count) }

  /// What comes out above so many layers: ciphertext, for the layer that stands there.
  func receive(above depth: Int) throws(Failure) -> [UInt8] {
    guard let socket else { throw .closed }
    if depth > 0 { return try layers[depth - 1].receive(from: self) }
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
    // TLS may have ended before the connection does.
    if !layers.isEmpty { while let bytes = try? receive(above: 0), !bytes.isEmpty {} }
  }

  // MARK: Writing

  func send(_ bytes: [UInt8]) throws(Failure) { try send(bytes.span) }

  func send(_ bytes: Span<UInt8>) throws(Failure) { try send(bytes, above: layers.count) }

  func send(_ bytes: [UInt8], above depth: Int) throws(Failure) { try send(bytes.span, above: depth) }

  /// Sends what comes from above so many layers.
  func send(_ bytes: Span<UInt8>, above depth: Int) throws(Failure) {
    guard let socket else { throw .closed }
    if depth > 0 { return try layers[depth - 1].send(bytes, to: self) }
    if fault.isActive { return try sendFaultily(bytes) }
    do {
      try socket.send(bytes)
    } catch {
      throw .broken(error)
    }
  }

  private func sendFaultily(_ bytes: Span<UInt8>) throws(Failure) {
    var offset = 0
    while offset < bytes.count {
      try cutIfDue()
      guard let socket else { throw .closed }
      let count = min(bytes.count - offset, fault.segmentBytesMax, fault.cut?.bytesLeft ?? .max)
      do {
        try socket.send(bytes.extracting(offset..<offset + count))
      } catch {
        throw .broken(error)
      }
      offset += count
      fault.cut?.bytesLeft -= count
      try cutIfDue()
    }
  }

  private func cutIfDue() throws(Failure) {
    guard let cut = fault.cut, cut.bytesLeft <= 0 else { return }
    fault.cut = nil
    switch cut.end {
    case .stall(let reached): throw stall(reached)
    case .reset: reset()
    case .close: closeSocket()
    }
    throw .ended
  }

  /// Blocks until the client has given up, or the server stops. The result is to be thrown.
  func stall(_ reached: TestServer.Signal?) -> Failure {
    reached?.fire()
    _ = try? waitForPeerEnd()
    return .ended
  }

  func setSendBuffer(bytes: Int) { socket?.setSendBuffer(bytes: bytes) }

  // MARK: TLS

  var isSecure: Bool { !layers.isEmpty }

  /// The layer that is spoken through.
  var tls: TLSLayer? { layers.last }

  /// Does the handshake. When it is done, TLS stands between this wire and its users.
  func secure(_ layer: TLSLayer, _ fault: TLSLayer.Fault) throws(Failure) {
    guard isOpen else { throw .closed }
    // What has been read ahead is the beginning of the handshake.
    layer.give(Array(buffer[position...]))
    buffer = []
    position = 0
    try layer.handshake(on: self, fault)
    layers.append(layer)
  }

  /// How many layers of TLS there are.
  var layerCount: Int { layers.count }

  // MARK: Ends

  /// Tells the peer that no more bytes come (close_notify, FIN), and goes on reading.
  func halfClose() {
    hasHalfClosed = true
    closeNotify()
    socket?.shutDownWriting()
  }

  /// Tells the peer that no more bytes come, by TLS only.
  func closeNotify() {
    for layer in layers.reversed() { layer.closeNotify(to: self) }
  }

  /// Closes it (close_notify, FIN).
  func close() {
    guard socket != nil else { return }
    closeNotify()
    closeSocket()
  }

  /// Closes it (FIN) without a word of TLS.
  func closeWithoutNotify() {
    for layer in layers { layer.forgoCloseNotify() }
    closeSocket()
  }

  /// What has arrived until now is read first: the kernel answers a close over unread bytes with a reset.
  private func closeSocket() {
    guard let socket else { return }
    socket.shutDownWriting()
    while socket.isReadable, var bytes = try? receive(above: 0), !bytes.isEmpty {
      for layer in layers { bytes = layer.absorb(bytes) }
    }
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
