/// A layer of TLS on a wire, above the socket or another layer of TLS.
///
/// Confined to the connection's thread, like the wire.
final class TLSLayer {
  /// The number of layers below this one.
  let depth: Int
  let session: TLSSession
  private let recordBytesMax: Int
  private(set) var hasSentCloseNotify = false
  /// The value of `session.progress` that the record of the handshake includes.
  private var progressKnown = 0
  /// Called when the record of the handshake needs an update after the handshake.
  var changed: (TLSLayer) -> Void = { _ in }

  private static let outputBytesMax = 1 << 16

  init(_ session: TLSSession, depth: Int, recordBytesMax: Int) {
    self.session = session
    self.depth = depth
    self.recordBytesMax = max(recordBytesMax, 1)
  }

  // MARK: Handshake

  /// Faults to make in a handshake.
  struct Fault {
    /// The number of the first flight that is not sent. Flight 1 answers the ClientHello.
    var stalledFlight: Int?
    /// A signal that fires when the handshake stalls.
    var reached: TestServer.Signal?
    /// The fatal alert with which to answer the ClientHello.
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
      case .needsInput: guard try fill(from: wire) else { throw .ended }
      case .ended: throw .ended
      case .failed(let message): throw .insecure(message)
      }
    }
  }

  /// Takes ciphertext that has already been received.
  func give(_ bytes: [UInt8]) { _ = session.feed(bytes) }

  /// Adds all facts known so far to the record of the handshake.
  func describe(_ handshake: inout TestServer.Handshake) {
    session.describe(&handshake)
    progressKnown = session.progress
  }

  func describeProgress(_ handshake: inout TestServer.Handshake) { session.describeProgress(&handshake) }

  private func reportProgress() {
    guard session.progress != progressKnown else { return }
    progressKnown = session.progress
    changed(self)
  }

  // MARK: Reading

  /// Receives more ciphertext.
  ///
  /// - Returns: `false` at the end of the layer below.
  private func fill(from wire: Wire) throws(Wire.Failure) -> Bool {
    let bytes = try wire.receive(above: depth)
    guard session.feed(bytes) else { throw .insecure("there is no memory for what has come") }
    return !bytes.isEmpty
  }

  /// Receives the next plaintext, which is empty at the end: close_notify, or the end of the layer below.
  func receive(from wire: Wire) throws(Wire.Failure) -> [UInt8] {
    while true {
      let (outcome, bytes) = session.read()
      reportProgress()
      // The output answers key updates and the like. A client that has gone does not need it.
      let output = session.takeOutput()
      if !output.isEmpty { try? wire.send(output, above: depth) }
      switch outcome {
      case .done: return bytes
      case .needsInput: guard try fill(from: wire) else { return [] }
      case .ended: return []
      case .failed(let message): throw .insecure(message)
      }
    }
  }

  /// Takes ciphertext that no step will read, for the facts in it, such as alerts.
  ///
  /// - Returns: The plaintext in it.
  func absorb(_ bytes: [UInt8]) -> [UInt8] {
    guard session.feed(bytes) else { return [] }
    var plaintext: [UInt8] = []
    while true {
      let (outcome, bytes) = session.read()
      guard case .done = outcome else { break }
      plaintext += bytes
    }
    _ = session.takeOutput()
    reportProgress()
    return plaintext
  }

  // MARK: Writing

  func send(_ bytes: Span<UInt8>, to wire: Wire) throws(Wire.Failure) {
    if hasSentCloseNotify { throw .closed }
    // OpenSSL itself limits records to 512 bytes or more; smaller limits are applied here.
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
      case .needsInput:
        // A renegotiation is in progress and has to end first.
        try flush(to: wire)
        guard try fill(from: wire) else { throw .ended }
      case .ended: throw .ended
      case .failed(let message): throw .insecure(message)
      }
    }
  }

  func flush(to wire: Wire) throws(Wire.Failure) {
    reportProgress()
    let output = session.takeOutput()
    if !output.isEmpty { try wire.send(output, above: depth) }
  }

  /// Sends close_notify, at most once.
  func closeNotify(to wire: Wire) {
    guard !hasSentCloseNotify else { return }
    hasSentCloseNotify = true
    session.closeNotify()
    // The client may have gone.
    try? flush(to: wire)
  }

  /// Makes `closeNotify` do nothing, as if close_notify had been sent.
  func forgoCloseNotify() { hasSentCloseNotify = true }
}
