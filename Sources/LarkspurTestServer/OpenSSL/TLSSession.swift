import CLarkspurTestServer

/// The server's side of one TLS connection, without a socket: takes and gives ciphertext and plaintext.
@safe
final class TLSSession {
  enum Outcome {
    case done
    /// The session needs more ciphertext first (`feed`).
    case needsInput
    /// The client has sent close_notify.
    case ended
    /// TLS has failed, for the reason in words. The output may contain an alert about the failure.
    case failed(String)
  }

  /// The context, which lives as long as its sessions.
  private let context: TLSContext
  private let pointer: OpaquePointer

  /// Fails if there is no memory.
  init?(_ context: TLSContext) {
    // Safe: only `deinit` frees the session.
    guard let pointer = unsafe larkspur_server_session_create(context.pointer) else { return nil }
    self.context = context
    unsafe self.pointer = pointer
  }

  deinit {
    // Safe: no reference to this object is left.
    unsafe larkspur_server_session_free(pointer)
  }

  private func outcome(_ result: Int32) -> Outcome {
    switch Int(result) {
    case LARKSPUR_SERVER_DONE: return .done
    case LARKSPUR_SERVER_NEEDS_INPUT: return .needsInput
    case Int(LARKSPUR_SERVER_ENDED): return .ended
    default:
      // Safe: the text is NUL-terminated and fits the buffer.
      return .failed(
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
          guard let base = buffer.baseAddress else { return "" }
          unsafe larkspur_server_error_message(pointer, base, buffer.count)
          return unsafe String(cString: base)
        })
    }
  }

  // MARK: Ciphertext

  /// Gives ciphertext to the session.
  ///
  /// - Returns: `false` if there is no memory.
  func feed(_ bytes: [UInt8]) -> Bool {
    // Safe: the bytes are lent for the call, with their length.
    unsafe larkspur_server_feed(pointer, bytes, bytes.count) == 1
  }

  /// Takes the ciphertext that is due to the client.
  func takeOutput() -> [UInt8] {
    // Safe: the session lives.
    let count = unsafe larkspur_server_output_count(pointer)
    guard count > 0 else { return [] }
    return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      // Safe: the function writes at most `count` bytes, and returns their number.
      guard let base = buffer.baseAddress else { return }
      initialized = unsafe larkspur_server_take_output(pointer, base, count)
    }
  }

  // MARK: Plaintext

  // Safe: the session lives.
  func handshake() -> Outcome { outcome(unsafe larkspur_server_handshake(pointer)) }

  /// Reads plaintext: some bytes with `.done`, otherwise none.
  func read() -> (Outcome, [UInt8]) {
    var result: Int32 = 0
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 14) { buffer, initialized in
      guard let base = buffer.baseAddress else { return }
      var count = 0
      // Safe: the function writes at most `buffer.count` bytes, and sets `count` to their number.
      result = unsafe larkspur_server_read(pointer, base, buffer.count, &count)
      initialized = Int(result) == LARKSPUR_SERVER_DONE ? count : 0
    }
    return (outcome(result), bytes)
  }

  /// Encrypts plaintext. After `.needsInput`, call it again with the same bytes.
  func write(_ bytes: Span<UInt8>) -> Outcome {
    // Safe: the span is lent for the call, with its length.
    unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress, bytes.count > 0 else { return .done }
      return outcome(unsafe larkspur_server_write(pointer, base, bytes.count))
    }
  }

  // MARK: Unusual actions of a server

  // Safe: the session lives, in this function and in `refuse`.
  func closeNotify() { unsafe larkspur_server_close_notify(pointer) }

  /// Makes the session answer the next ClientHello with this fatal alert.
  func refuse(alert: UInt8) { unsafe larkspur_server_refuse(pointer, Int32(alert)) }

  func updateKey(isUpdateRequested: Bool) -> Outcome {
    // Safe: the session lives, in this function and in the next two.
    outcome(unsafe larkspur_server_update_key(pointer, isUpdateRequested ? 1 : 0))
  }

  func sendTicket() -> Outcome { outcome(unsafe larkspur_server_send_ticket(pointer)) }

  func requestRenegotiation() -> Outcome { outcome(unsafe larkspur_server_request_renegotiation(pointer)) }

  /// Writes a record of any type with any content, under the connection's keys.
  func forgeRecord(type: UInt8, _ bytes: [UInt8]) -> Outcome {
    // Safe: the bytes are lent for the call, with their length.
    outcome(unsafe larkspur_server_forge_record(pointer, Int32(type), bytes, bytes.count))
  }

  // MARK: Facts about the connection

  /// A number that changes whenever `describeProgress` has more to report.
  var progress: Int {
    // Safe: the session lives.
    Int(unsafe larkspur_server_alert_count(pointer)) + Int(unsafe larkspur_server_renegotiations(pointer))
  }

  func describe(_ handshake: inout TestServer.Handshake) {
    // Safe: the session lives; the text is NUL-terminated, and lives as long as the session or for ever.
    unsafe handshake.version = String(cString: larkspur_server_version(pointer))
    unsafe handshake.cipher = String(cString: larkspur_server_cipher(pointer))
    handshake.isResumed = unsafe larkspur_server_is_resumed(pointer) != 0
    handshake.serverName = fact(LARKSPUR_SERVER_FACT_SERVER_NAME).map { text(of: $0) }
    handshake.alpnOffered = Self.protocols(fact(LARKSPUR_SERVER_FACT_ALPN_OFFERED) ?? [])
    handshake.alpnChosen = fact(LARKSPUR_SERVER_FACT_ALPN_CHOSEN).map { text(of: $0) }
    handshake.ciphersOffered = Self.pairs(fact(LARKSPUR_SERVER_FACT_CIPHERS_OFFERED) ?? [])
    handshake.extensionsOffered = Self.pairs(fact(LARKSPUR_SERVER_FACT_EXTENSIONS_OFFERED) ?? [])
    handshake.clientCertificateDER = fact(LARKSPUR_SERVER_FACT_CERTIFICATE)
    handshake.clientCertificateSubject = fact(LARKSPUR_SERVER_FACT_SUBJECT).map { text(of: $0) }
    describeProgress(&handshake)
  }

  /// Reports the facts that change after the handshake.
  func describeProgress(_ handshake: inout TestServer.Handshake) {
    // Safe: the session lives.
    handshake.renegotiations = Int(unsafe larkspur_server_renegotiations(pointer))
    let alerts = fact(LARKSPUR_SERVER_FACT_ALERTS) ?? []
    handshake.alertsReceived = []
    handshake.alertsSent = []
    for start in stride(from: 0, to: alerts.count - 2, by: 3) {
      let alert = TestServer.Alert(isFatal: alerts[start + 1] == 2, number: alerts[start + 2])
      if alerts[start] == 1 { handshake.alertsReceived.append(alert) } else { handshake.alertsSent.append(alert) }
    }
  }

  private func fact(_ number: Int) -> [UInt8]? {
    var out: UnsafeMutablePointer<UInt8>?
    var count = 0
    // Safe: on success the function has allocated `count` bytes, which the caller frees.
    guard unsafe larkspur_server_fact(pointer, Int32(number), &out, &count) == 1, let bytes = unsafe out else {
      return nil
    }
    defer { unsafe larkspur_ca_free(bytes) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
  }

  private static func pairs(_ bytes: [UInt8]) -> [Int] {
    stride(from: 0, to: bytes.count - 1, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
  }

  /// Reads names of protocols, each behind a byte with its length.
  private static func protocols(_ bytes: [UInt8]) -> [String] {
    var names: [String] = []
    var rest = bytes[...]
    while let count = rest.popFirst() {
      names.append(text(of: rest.prefix(Int(count))))
      rest = rest.dropFirst(Int(count))
    }
    return names
  }
}
