import CLarkspurOpenSSL

/// The server's side of one TLS connection: ciphertext in and out, plaintext out and in. No socket.
@safe
final class TLSSession {
  enum Outcome {
    case done
    /// More ciphertext has to be fed first.
    case wantsInput
    /// The client has sent close_notify.
    case ended
    /// TLS is over: why, in words. The output may hold an alert about it.
    case failed(String)
  }

  /// Lives as long as its sessions.
  private let context: TLSContext
  private let pointer: OpaquePointer

  /// Nil: there is no memory for it.
  init?(_ context: TLSContext) {
    // Safe: it is freed in `deinit`, and nowhere else.
    guard let pointer = unsafe larkspur_server_session_create(context.pointer) else { return nil }
    self.context = context
    unsafe self.pointer = pointer
  }

  deinit {
    // Safe: nobody refers to it any more.
    unsafe larkspur_server_session_free(pointer)
  }

  private func outcome(_ result: Int32) -> Outcome {
    switch Int(result) {
    case LARKSPUR_SERVER_DONE: return .done
    case LARKSPUR_SERVER_WANTS_INPUT: return .wantsInput
    case Int(LARKSPUR_SERVER_ENDED): return .ended
    default:
      // Safe: the words are NUL-terminated and fit the buffer.
      return .failed(
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
          guard let base = buffer.baseAddress else { return "" }
          unsafe larkspur_server_error_words(pointer, base, buffer.count)
          return unsafe String(cString: base)
        })
    }
  }

  // MARK: Ciphertext

  /// False: there is no memory for it.
  func feed(_ bytes: [UInt8]) -> Bool {
    // Safe: the bytes are lent for the call, with their length.
    unsafe larkspur_server_feed(pointer, bytes, bytes.count) == 1
  }

  /// What is to be sent to the client.
  func takeOutput() -> [UInt8] {
    // Safe: the session lives.
    let count = unsafe larkspur_server_output_count(pointer)
    guard count > 0 else { return [] }
    return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      // Safe: it writes at most `count` bytes, and says how many.
      guard let base = buffer.baseAddress else { return }
      initialized = unsafe larkspur_server_take_output(pointer, base, count)
    }
  }

  // MARK: Plaintext

  // Safe: the session lives, here and below.
  func handshake() -> Outcome { outcome(unsafe larkspur_server_handshake(pointer)) }

  /// With `.done` come some bytes.
  func read() -> (Outcome, [UInt8]) {
    var result: Int32 = 0
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 14) { buffer, initialized in
      guard let base = buffer.baseAddress else { return }
      var count = 0
      // Safe: it writes at most as many bytes as there is room for, and says how many.
      result = unsafe larkspur_server_read(pointer, base, buffer.count, &count)
      initialized = Int(result) == LARKSPUR_SERVER_DONE ? count : 0
    }
    return (outcome(result), bytes)
  }

  /// After `.wantsInput` it is to be called again with the same bytes.
  func write(_ bytes: Span<UInt8>) -> Outcome {
    // Safe: the span is lent for the call, with its length.
    unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress, bytes.count > 0 else { return .done }
      return outcome(unsafe larkspur_server_write(pointer, base, bytes.count))
    }
  }

  // MARK: What servers seldom do

  // Safe: the session lives, here and below.
  func closeNotify() { unsafe larkspur_server_close_notify(pointer) }

  /// The next ClientHello is answered with this fatal alert.
  func refuse(alert: UInt8) { unsafe larkspur_server_refuse(pointer, Int32(alert)) }

  func updateKey(isUpdateRequested: Bool) -> Outcome {
    // Safe: the session lives, here and below.
    outcome(unsafe larkspur_server_update_key(pointer, isUpdateRequested ? 1 : 0))
  }

  func sendTicket() -> Outcome { outcome(unsafe larkspur_server_send_ticket(pointer)) }

  func requestRenegotiation() -> Outcome { outcome(unsafe larkspur_server_request_renegotiation(pointer)) }

  /// Writes a record of any type with any content, under the connection's keys.
  func forgeRecord(type: UInt8, _ bytes: [UInt8]) -> Outcome {
    // Safe: the bytes are lent for the call, with their length.
    outcome(unsafe larkspur_server_forge_record(pointer, Int32(type), bytes, bytes.count))
  }

  // MARK: What the connection has shown

  /// Another number each time when `describeProgress` has more to tell.
  var progress: Int {
    // Safe: the session lives.
    Int(unsafe larkspur_server_alert_count(pointer)) + Int(unsafe larkspur_server_renegotiations(pointer))
  }

  func describe(_ handshake: inout TestServer.Handshake) {
    // Safe: the session lives; the text is NUL-terminated, and stands in it or for ever.
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

  /// What changes after the handshake.
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
    // Safe: on success it has allocated `count` bytes, which are ours to free.
    guard unsafe larkspur_server_fact(pointer, Int32(number), &out, &count) == 1, let bytes = unsafe out else {
      return nil
    }
    defer { unsafe larkspur_ca_free(bytes) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
  }

  private static func pairs(_ bytes: [UInt8]) -> [Int] {
    stride(from: 0, to: bytes.count - 1, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
  }

  /// A length byte stands before each.
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
