import LarkspurBytes
import LarkspurIO

/// The operations of a connection's thread on its socket: buffered reads, writes, ends. Layers of TLS may stand
/// between.
///
/// Confined to that thread. `ServerCore` keeps a second reference to the socket in order to interrupt the thread.
final class Wire {
  /// The reason why no more bytes flow.
  enum Failure: Error {
    /// The peer has ended its sending side, or the server is stopping.
    case ended
    /// The connection broke, usually because the peer has gone.
    case broken(Errno)
    /// This side has already closed the connection.
    case closed
    /// TLS has failed, for the reason in words.
    case insecure(String)
  }

  private static let receiveBytesMax = 1 << 16

  private var socket: BlockingSocket?
  /// Drops the core's reference to the socket, so that `release` closes it.
  private let forget: () -> Void
  private var buffer: [UInt8] = []
  private var position = 0
  private(set) var hasHalfClosed = false
  /// The layers of TLS, the lowest first. If empty, bytes go to the socket unchanged.
  private var layers: [TLSLayer] = []
  var fault = SendFault()

  init(_ socket: consuming BlockingSocket, forget: @escaping () -> Void) {
    // Each piece that a script sends leaves at once, as a separate segment.
    socket.setNoDelay()
    self.socket = socket
    self.forget = forget
  }

  var isOpen: Bool { socket != nil }

  // MARK: Reading

  /// Whether bytes can be taken, or the end of the stream seen, without waiting for the peer. Over TLS a record may
  /// have to be completed first.
  var isReadable: Bool { position < buffer.count || socket?.isReadable == true }

  /// Receives at least one more byte into the buffer.
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

  /// Receives the bytes that come out above the lowest `depth` layers: ciphertext for the next layer.
  func receive(above depth: Int) throws(Failure) -> [UInt8] {
    guard let socket else { throw .closed }
    if depth > 0 { return try layers[depth - 1].receive(from: self) }
    do {
      return try socket.receive(atMost: Self.receiveBytesMax)
    } catch {
      throw .broken(error)
    }
  }

  /// Takes the next bytes, at least one.
  func take(atMost count: Int) throws(Failure) -> ArraySlice<UInt8> {
    if position == buffer.count { try fill() }
    let taken = buffer[position..<min(position + count, buffer.count)]
    position = taken.endIndex
    return taken
  }

  /// Returns the next byte without taking it.
  func peek() throws(Failure) -> UInt8 {
    if position == buffer.count { try fill() }
    return buffer[position]
  }

  /// Takes everything up to a line feed, including the line feed.
  ///
  /// - Parameter partial: Set to the number of bytes of the line that had arrived when the peer ended.
  /// - Returns: The line, or `nil` if it is longer than `count` bytes.
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

  /// Reads and discards bytes until the peer ends its side.
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

  /// Sends bytes through the lowest `depth` layers.
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

  /// Blocks until the client ends the connection or the server stops.
  ///
  /// - Returns: The failure for the caller to throw.
  func stall(_ reached: TestServer.Signal?) -> Failure {
    reached?.fire()
    _ = try? waitForPeerEnd()
    return .ended
  }

  func setSendBuffer(bytes: Int) { socket?.setSendBuffer(bytes: bytes) }

  // MARK: TLS

  var isSecure: Bool { !layers.isEmpty }

  /// The highest layer of TLS, which reads and writes go through.
  var tls: TLSLayer? { layers.last }

  /// Does the handshake of a new layer, and then puts the layer on top of the others.
  func secure(_ layer: TLSLayer, _ fault: TLSLayer.Fault) throws(Failure) {
    guard isOpen else { throw .closed }
    // The bytes that have been read ahead are the beginning of the handshake.
    layer.give(Array(buffer[position...]))
    buffer = []
    position = 0
    try layer.handshake(on: self, fault)
    layers.append(layer)
  }

  /// The number of TLS layers.
  var layerCount: Int { layers.count }

  // MARK: Ends

  /// Signals the peer that no more bytes come (close_notify, FIN). Reading remains possible.
  func halfClose() {
    hasHalfClosed = true
    closeNotify()
    socket?.shutDownWriting()
  }

  /// Signals the peer that no more bytes come, by close_notify only.
  func closeNotify() {
    for layer in layers.reversed() { layer.closeNotify(to: self) }
  }

  /// Closes the connection (close_notify, FIN).
  func close() {
    guard socket != nil else { return }
    closeNotify()
    closeSocket()
  }

  /// Closes the connection (FIN) without close_notify.
  func closeWithoutNotify() {
    for layer in layers { layer.forgoCloseNotify() }
    closeSocket()
  }

  /// Closes the socket. Reads everything that has arrived first: the kernel answers a close over unread bytes with RST.
  private func closeSocket() {
    guard let socket else { return }
    socket.shutDownWriting()
    while socket.isReadable, var bytes = try? receive(above: 0), !bytes.isEmpty {
      for layer in layers { bytes = layer.absorb(bytes) }
    }
    release()
  }

  /// Closes the connection once the peer does. So no RST can overtake the bytes that the peer should read.
  func closeAfterPeer() {
    guard isOpen else { return }
    halfClose()
    drain()
    release()
  }

  /// Aborts the connection (RST).
  func reset() {
    socket?.resetOnClose()
    release()
  }

  private func release() {
    socket = nil
    forget()
  }

  /// Blocks until the peer has ended its side, the connection has broken, or the server stops. Reads nothing.
  ///
  /// - Returns: `false` if the deadline came first.
  func waitForPeerEnd(until deadline: Deadline = .never) throws(Failure) -> Bool {
    guard let socket else { throw .closed }
    return socket.waitForPeerEnd(until: deadline)
  }
}
