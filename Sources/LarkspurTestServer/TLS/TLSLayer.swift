/// TLS on a wire: between those who read and write, and the layer below (the socket, or TLS again).
///
/// Confined to the connection's thread, as the wire is.
final class TLSLayer {
  /// How many layers there are below it.
  let depth: Int
  let session: TLSSession
  private let recordBytesMax: Int
  private(set) var hasSentCloseNotify = false
  /// How much the record knows of.
  private var progressKnown = 0
  /// Called when the record has changed after the handshake.
  var changed: (TLSLayer) -> Void = { _ in }

  private static let outputBytesMax = 1 << 16

  init(_ session: TLSSession, depth: Int, recordBytesMax: Int) {
    self.session = session
    self.depth = depth
    self.recordBytesMax = max(recordBytesMax, 1)
  }

  // MARK: Handshake

  /// What goes wrong on purpose in a handshake.
  struct Fault {
    /// Nothing is sent from this flight of the server's on: 1 is what answers the ClientHello.
    var stalledFlight: Int?
    /// Fires when it has come to the stall.
    var reached: TestServer.Signal?
    /// The fatal alert that answers the ClientHello.
    var alert: UInt8?
  }

  func handshake(on wire: Wire, _ fault: Fault) throws(Wire.Failure) {
    var flights = 0
    if let alert = fault.alert { session.refuse(alert: alert) }
    while true {
      let outcome = session.handshake()
      let output = session.takeOutput()
      if !output.isEmpty {
        flights += 1
        if flights == fault.stalledFlight { throw wire.stall(fault.reached) }
        try wire.send(output, above: depth)
      }
      switch outcome {
      case .done: return
      case .wantsInput: guard try fill(from: wire) else { throw .ended }
      case .ended: throw .ended
      case .failed(let words): throw .insecure(words)
      }
    }
  }

  /// Ciphertext that has come already.
  func give(_ bytes: [UInt8]) { _ = session.feed(bytes) }

  /// Completes the record with what is known now.
  func describe(_ handshake: inout TestServer.Handshake) {
    session.describe(&handshake)
    progressKnown = session.progress
  }

  func describeProgress(_ handshake: inout TestServer.Handshake) { session.describeProgress(&handshake) }

  private func tellOfProgress() {
    guard session.progress != progressKnown else { return }
    progressKnown = session.progress
    changed(self)
  }

  // MARK: Reading

  /// More ciphertext. False: there will be no more.
  private func fill(from wire: Wire) throws(Wire.Failure) -> Bool {
    let bytes = try wire.receive(above: depth)
    guard session.feed(bytes) else { throw .insecure("there is no memory for what has come") }
    return !bytes.isEmpty
  }

  /// The next plaintext; empty at the end: close_notify, or the end of the layer below.
  func receive(from wire: Wire) throws(Wire.Failure) -> [UInt8] {
    while true {
      let (outcome, bytes) = session.read()
      tellOfProgress()
      // Answers to key updates and the like. A client that has gone does not want them.
      let output = session.takeOutput()
      if !output.isEmpty { try? wire.send(output, above: depth) }
      switch outcome {
      case .done: return bytes
      case .wantsInput: guard try fill(from: wire) else { return [] }
      case .ended: return []
      case .failed(let words): throw .insecure(words)
      }
    }
  }

  /// Takes in ciphertext that nobody will read, for what it tells. The result is the plaintext in it.
  func absorb(_ bytes: [UInt8]) -> [UInt8] {
    guard session.feed(bytes) else { return [] }
    var plaintext: [UInt8] = []
    while true {
      let (outcome, bytes) = session.read()
      guard case .done = outcome else { break }
      plaintext += bytes
    }
    _ = session.takeOutput()
    tellOfProgress()
    return plaintext
  }

  // MARK: Writing

  func send(_ bytes: Span<UInt8>, to wire: Wire) throws(Wire.Failure) {
    if hasSentCloseNotify { throw .closed }
    // OpenSSL cuts records of 512 bytes and more itself.
    let pieceBytesMax = recordBytesMax < 512 ? recordBytesMax : Self.outputBytesMax
    var offset = 0
    var waiting = 0
    while offset < bytes.count {
      let count = min(pieceBytesMax, bytes.count - offset)
      try write(bytes.extracting(offset..<offset + count), to: wire)
      offset += count
      waiting += count + 64
      if waiting >= Self.outputBytesMax {
        try flush(to: wire)
        waiting = 0
      }
    }
    try flush(to: wire)
  }

  private func write(_ bytes: Span<UInt8>, to wire: Wire) throws(Wire.Failure) {
    while true {
      switch session.write(bytes) {
      case .done: return
      case .wantsInput:
        // A renegotiation is under way, and comes first.
        try flush(to: wire)
        guard try fill(from: wire) else { throw .ended }
      case .ended: throw .ended
      case .failed(let words): throw .insecure(words)
      }
    }
  }

  func flush(to wire: Wire) throws(Wire.Failure) {
    tellOfProgress()
    let output = session.takeOutput()
    if !output.isEmpty { try wire.send(output, above: depth) }
  }

  /// Tells the client, once, that no more comes.
  func closeNotify(to wire: Wire) {
    guard !hasSentCloseNotify else { return }
    hasSentCloseNotify = true
    session.closeNotify()
    // A client that has gone does not hear it.
    try? flush(to: wire)
  }

  /// From now on it is as if close_notify had been sent.
  func forgoCloseNotify() { hasSentCloseNotify = true }
}
