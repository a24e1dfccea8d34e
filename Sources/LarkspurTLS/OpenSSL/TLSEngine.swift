import LarkspurBytes

/// The client's side of one TLS connection. Converts between ciphertext and plaintext.
///
/// Theory of operation. The engine has no descriptor, no clock and no thread. Each call lends it the ciphertext that
/// has arrived and room for ciphertext to send, and returns what the engine needs next. The caller first calls
/// `handshake` until it returns `done`, then `read` and `write` in any order, and finally `shutDown`.
///
/// ```
///  handshake --needsTrust--> decide --+
///     |  ^                            |
///     |  +---------- again <----------+
///     |  +---------- again <----------+
///     |--needsIdentity--> identify ---+
///     v
///   done --read, write--> ... --shutDown-->
/// ```
///
/// Trust. OpenSSL verifies the chain, the engine matches the pins against the verified chain, and asks the caller if
/// `asksTrust` is set. For a resumed session this happens with the chain that was verified in the session's first
/// handshake. The engine returns `done` only when all checks have passed, so no byte of a request leaves before.
@safe
public struct TLSEngine: ~Copyable {
  public struct Options: Sendable {
    /// Whether `handshake` asks the caller about the server's certificates.
    public var asksTrust = false
    /// Whether `handshake` asks the caller for a certificate when the server requests one.
    public var asksIdentity = false

    public init() {}
  }

  public enum Step: Sendable {
    case done(Handshake)
    /// More ciphertext must arrive first.
    case needsInput
    /// The room for ciphertext is full.
    case needsOutput
    /// The caller must call `decide`, and then `handshake` again.
    case needsTrust(Trust)
    /// The caller must call `identify`, and then `handshake` again. `issuers` has the names of the certificate
    /// authorities that the server accepts. If it is empty, any will do.
    case needsIdentity(issuers: [DistinguishedName])
  }

  public enum Reading: Hashable, Sendable {
    /// The number of bytes of plaintext appended. `drained` means that further plaintext needs more ciphertext.
    case bytes(Int, drained: Bool)
    case needsInput
    case needsOutput
    /// The server has announced the end of its data (`close_notify`).
    case closed
  }

  public enum Writing: Hashable, Sendable {
    /// The number of bytes of plaintext consumed.
    case bytes(Int)
    case needsInput
    case needsOutput
  }

  private let context: TLSContext
  private let key: SessionKey
  private let options: Options
  /// The start of the handshake in seconds since 1970.
  private let date: Int64
  private let reference: Reference
  // Safe: the object lives as long as `reference`, and only the engine uses it.
  private var tls: OpaquePointer { unsafe reference.pointer }

  /// The sessions of the server, or `nil` if sessions are not resumed.
  private let shelf: SessionCache.Shelf?
  /// The session that the client offered for resumption.
  private let offered: TLSSession?
  private var trust: Trust?
  /// The reason why the server is not trusted, set by `decide`.
  private var refusal: TLSError?
  private var hasDecided = false
  /// The error of the handshake, which ends it.
  private var handshakeFailure: TLSError?
  /// Whether the cache must not keep the session: the caller trusted a chain that verification had rejected, or was
  /// asked for a client certificate.
  private var isPrivate = false
  private var pinMismatches: [PinMismatch] = []

  /// Creates an engine.
  ///
  /// - Parameter date: Seconds since 1970.
  public init(
    context: TLSContext, key: SessionKey, options: Options = Options(), date: Int64
  ) throws(TLSError) {
    // Safe: the connection keeps a reference to the context.
    let tls = unsafe larkspur_tls_new(context.reference.pointer, options.asksIdentity)
    guard let reference = unsafe Reference(tls, releasedBy: { unsafe larkspur_tls_free($0) }) else {
      throw TLSError(.outOfMemory, reason: ErrorQueue.takeReason())
    }
    guard unsafe larkspur_tls_set_server(reference.pointer, key.server.name, key.server.address, date) == 1 else {
      throw TLSError(.hostInvalid, reason: ErrorQueue.takeReason())
    }
    self.reference = reference
    self.context = context
    self.key = key
    self.options = options
    self.date = date
    shelf = context.configuration.resumesSessions ? context.sessions.shelf(for: key) : nil
    offered = shelf?.take(date: date)
    // Safe: the connection takes its own reference.
    if let offered { _ = unsafe larkspur_tls_offer(reference.pointer, offered.reference.pointer) }
  }

  // MARK: - Handshake

  /// Continues the handshake as far as the ciphertext allows.
  public mutating func handshake(
    _ incoming: inout Chunk, _ outgoing: inout Chunk, inputEnded: Bool = false
  ) throws(TLSError) -> Step {
    if let handshakeFailure { throw handshakeFailure }
    do throws(TLSError) {
      return try step(&incoming, &outgoing, inputEnded)
    } catch {
      var failure = error
      failure.trust = trust
      handshakeFailure = failure
      throw failure
    }
  }

  private mutating func step(
    _ incoming: inout Chunk, _ outgoing: inout Chunk, _ inputEnded: Bool
  ) throws(TLSError) -> Step {
    while true {
      // Safe: `call` lends the memory that the closure uses.
      let result = unsafe call(&incoming, &outgoing, inputEnded) { unsafe larkspur_tls_handshake($0, $1, $2) }
      switch result.status {
      case larkspur_tls_done: return try finish()
      case larkspur_tls_needs_input: return .needsInput
      case larkspur_tls_needs_output: return .needsOutput
      case larkspur_tls_needs_identity: return .needsIdentity(issuers: acceptableIssuers)
      case larkspur_tls_needs_trust:
        let trust = takeTrust()
        self.trust = trust
        if options.asksTrust { return .needsTrust(trust) }
        decide(.verified)
      case larkspur_tls_closed: throw TLSError(.connectionLost, reason: "the server sent close_notify")
      default: throw refusal ?? failure(isHandshake: true)
      }
    }
  }

  /// Decides whether the server is trusted.
  public mutating func decide(_ decision: TrustDecision) {
    guard let trust else { return }
    hasDecided = true
    refusal = judge(trust, decision)
    if case .trusted = decision, !trust.result.isTrusted { isPrivate = true }
    // The number determines the alert that OpenSSL sends to the server.
    let code =
      refusal == nil ? X509_V_OK : trust.result.isTrusted ? X509_V_ERR_APPLICATION_VERIFICATION : trust.result.code
    // Safe: the object lives as long as `reference`, and only the engine uses it.
    unsafe larkspur_tls_decide(tls, code)
  }

  /// Sets the client's certificate. With `nil` the client sends the configuration's certificate, if there is one.
  public mutating func identify(_ identity: ClientIdentity?) throws(TLSError) {
    isPrivate = true
    // Safe: the connection takes its own references.
    let isFit =
      unsafe larkspur_tls_identify(
        tls, identity?.certificate.reference.pointer, identity?.key.pointer, identity?.list.pointer) == 1
    guard isFit else { throw TLSError(.identityUnreadable, reason: ErrorQueue.takeReason()) }
  }

  /// Returns the pin mismatches since the last call, including those that do not fail the connection.
  public mutating func takePinMismatches() -> [PinMismatch] {
    let mismatches = pinMismatches
    pinMismatches = []
    return mismatches
  }

  private mutating func judge(_ trust: Trust, _ decision: TrustDecision) -> TLSError? {
    // Certificates that were not verified prove nothing, not even for pins.
    var chain = trust.result.isTrusted ? trust.verified : []
    switch decision {
    case .refused: return TLSError(.refusedByCaller)
    case .trusted(let verified): if !verified.isEmpty { chain = verified }
    case .verified:
      if let error = trust.result.error, !context.configuration.dangerouslyAllowsAnyCertificate { return error }
    }
    var failure: TLSError?
    for (mismatch, reportsOnly) in context.configuration.pins.mismatches(chain, for: key.server) {
      pinMismatches.append(mismatch)
      if !reportsOnly { failure = TLSError(.pinMismatch(mismatch)) }
    }
    return failure
  }

  /// Makes the checks that remain after the handshake.
  private mutating func finish() throws(TLSError) -> Step {
    // Safe: for all calls here, the object lives as long as `reference`, and only the engine uses it.
    let isResumed = unsafe SSL_session_reused(larkspur_tls_ssl(tls)) == 1
    if isResumed, !hasDecided {
      guard let offered else {
        throw TLSError(.protocolViolation, reason: "a session was resumed that was not offered")
      }
      trust = offered.trust
      if options.asksTrust { return .needsTrust(offered.trust) }
      decide(.verified)
    }
    if let refusal { throw refusal }
    guard let trust, hasDecided else { throw TLSError(.protocolViolation, reason: "the server showed no certificate") }
    if let protocolName = applicationProtocol, protocolName != "http/1.1" {
      throw TLSError(.applicationProtocol, reason: protocolName)
    }
    if !isResumed { try checkStapledResponse(trust) }
    keepSessions()
    // Safe: the object lives as long as `reference`, and only the engine uses it.
    guard let version = TLSVersion(rawValue: Int(unsafe SSL_version(larkspur_tls_ssl(tls)))) else {
      throw TLSError(.protocolVersion)
    }
    return .done(Handshake(version: version, cipher: cipher, isResumed: isResumed, trust: trust))
  }

  /// Checks the stapled OCSP response. An unsatisfactory response ends the handshake (RFC 6066 8), and so does a
  /// missing response that the certificate promises (RFC 7633).
  private func checkStapledResponse(_ trust: Trust) throws(TLSError) {
    // A caller that trusts an unverified chain has decided already.
    guard trust.result.isTrusted, let leaf = trust.verified.first else { return }
    var bytes: UnsafePointer<UInt8>?
    // Safe: the response lives as long as the connection.
    let count = unsafe larkspur_tls_stapled_response(tls, &bytes)
    var status = larkspur_ocsp_none
    if count > 0, let list = Certificate.list(trust.verified) {
      unsafe status = larkspur_check_stapled_response(
        bytes, count, list.pointer, context.store.reference.pointer, date)
    }
    switch status {
    case larkspur_ocsp_good: return
    case larkspur_ocsp_none:
      guard leaf.mustStaple else { return }
      throw TLSError(.revocationUnknown, reason: "the server staples no response although its certificate promises one")
    case larkspur_ocsp_revoked: throw TLSError(.revoked, reason: "by the stapled response")
    case larkspur_ocsp_unknown: throw TLSError(.revocationUnknown, reason: "the stapled response does not know it")
    case larkspur_ocsp_outdated: throw TLSError(.revocationUnknown, reason: "the stapled response is out of date")
    case larkspur_ocsp_untrusted:
      throw TLSError(.revocationUnknown, reason: "the stapled response is not signed by the issuer")
    default: throw TLSError(.revocationUnknown, reason: "the stapled response cannot be read")
    }
  }

  private func takeTrust() -> Trust {
    // Safe: the call transfers the lists.
    var taken = unsafe larkspur_tls_verification_result()
    unsafe larkspur_tls_take_verification(tls, &taken)
    let sent = unsafe Certificate.list(taking: taken.sent)
    let (result, verified) = unsafe context.store.result(of: taken, sent, for: key.server, date: date)
    return Trust(server: key.server, sent: sent, verified: verified, result: result, store: context.store)
  }

  private var acceptableIssuers: [DistinguishedName] {
    // Safe: the object lives as long as `reference`, and only the engine uses it.
    unsafe (0..<larkspur_tls_acceptable_issuers(tls)).map { index in
      unsafe DistinguishedName(
        text: Certificate.text(larkspur_tls_acceptable_issuer(tls, index)),
        der: Array(taking: larkspur_tls_acceptable_issuer_der(tls, index)))
    }
  }

  private var applicationProtocol: String? {
    var name: UnsafePointer<UInt8>?
    // Safe: the name lives as long as the connection, and is copied at once.
    let count = unsafe larkspur_tls_alpn(tls, &name)
    return unsafe count == 0
      ? nil : String(decoding: unsafe UnsafeBufferPointer(start: name, count: count), as: UTF8.self)
  }

  private var cipher: String {
    // Safe: the name is a constant of OpenSSL.
    guard let name = unsafe SSL_CIPHER_standard_name(SSL_get_current_cipher(larkspur_tls_ssl(tls))) else { return "" }
    return unsafe String(cString: name)
  }

  /// Adds the sessions that have arrived to the cache.
  private func keepSessions() {
    // Safe: the call transfers each session.
    while let session = unsafe larkspur_tls_take_session(tls) {
      let session = trust.flatMap { unsafe TLSSession(taking: session, trust: $0, date: date) }
      if let session, !isPrivate { shelf?.keep(session) }
    }
  }

  // MARK: - Data

  /// Decrypts ciphertext into the spare room of `plain`.
  public mutating func read(
    _ incoming: inout Chunk, into plain: inout Chunk, _ outgoing: inout Chunk, inputEnded: Bool = false
  ) throws(TLSError) -> Reading {
    var result = larkspur_tls_result()
    plain.withSpare { room in
      unsafe room.withUnsafeMutableBytes { bytes, count in
        // Safe: the room behind the `count` initialized bytes is lent for the call, which returns how much it used.
        let base = unsafe bytes.baseAddress.map { unsafe $0 + count }
        let free = bytes.count - count
        result = unsafe call(&incoming, &outgoing, inputEnded) { unsafe larkspur_tls_read($0, $1, $2, base, free) }
        count += result.plain_count
      }
    }
    keepSessions()
    if result.plain_count > 0 {
      return .bytes(result.plain_count, drained: result.status == larkspur_tls_needs_input)
    }
    switch result.status {
    case larkspur_tls_needs_output: return .needsOutput
    case larkspur_tls_closed: return .closed
    case larkspur_tls_failed: throw failure(isHandshake: false)
    case larkspur_tls_done, larkspur_tls_needs_input: return .needsInput
    default: throw TLSError(.protocolViolation, reason: "a handshake after the handshake")
    }
  }

  /// Encrypts the front of `plain`, at most one record of 16 KiB.
  public mutating func write(
    _ plain: Span<UInt8>, _ incoming: inout Chunk, _ outgoing: inout Chunk
  ) throws(TLSError) -> Writing {
    let result = unsafe plain.withUnsafeBufferPointer { bytes in
      // Safe: the bytes are lent for the call.
      unsafe call(&incoming, &outgoing, false) { unsafe larkspur_tls_write($0, $1, $2, bytes.baseAddress, bytes.count) }
    }
    switch result.status {
    case larkspur_tls_done: return .bytes(result.plain_count)
    case larkspur_tls_needs_output: return .needsOutput
    case larkspur_tls_needs_input: return .needsInput
    case larkspur_tls_failed, larkspur_tls_closed: throw failure(isHandshake: false)
    default: throw TLSError(.protocolViolation, reason: "a handshake after the handshake")
    }
  }

  /// Announces the end of the client's data (`close_notify`).
  public mutating func shutDown(_ outgoing: inout Chunk) {
    var nothing = Chunk()
    // Safe: `call` lends the memory that the closure uses.
    _ = unsafe call(&nothing, &outgoing, false) { unsafe larkspur_tls_shut_down($0, $1, $2) }
  }

  /// Makes OpenSSL keep its record buffers, 32 KiB in all for reading and writing. By default it frees and allocates
  /// them with each record.
  public mutating func keepBuffers() {
    // Safe: the object lives as long as `reference`, and only the engine uses it.
    unsafe larkspur_tls_keep_buffers(tls)
  }

  /// Calls `body` with the ciphertext that has arrived and the room for ciphertext to send.
  private func call(
    _ incoming: inout Chunk, _ outgoing: inout Chunk, _ inputEnded: Bool,
    _ body: (OpaquePointer, UnsafeRawPointer, UnsafeMutableRawPointer) -> Void
  ) -> larkspur_tls_result {
    var result = larkspur_tls_result()
    // Safe: the pointers are used only inside the closures.
    unsafe incoming.bytes.withUnsafeBufferPointer { input in
      outgoing.withSpare { room in
        unsafe room.withUnsafeMutableBytes { output, count in
          // Safe: both are lent for the call, which returns how much of them it used.
          var flow = unsafe larkspur_tls_flow(
            input: input.baseAddress, input_count: input.count,
            output: output.baseAddress.map { unsafe ($0 + count).assumingMemoryBound(to: UInt8.self) },
            output_room: output.count - count, input_ended: inputEnded ? 1 : 0)
          unsafe body(tls, &flow, &result)
          count += result.output_used
        }
      }
    }
    incoming.drop(result.input_used)
    return result
  }

  private func failure(isHandshake: Bool) -> TLSError {
    // Safe: the object lives as long as `reference`, and only the engine uses it.
    var details = larkspur_tls_failure_details()
    unsafe larkspur_tls_failure(tls, &details)
    var error = unsafe TLSError(details, isHandshake: isHandshake)
    error.isAfterHandshake = !isHandshake
    if error.problem == .noSharedCipher, !context.configuration.dangerouslyAllowsLegacyKeyExchange {
      let hint = "only ECDHE is offered without dangerouslyAllowsLegacyKeyExchange"
      error.reason = error.reason.map { "\($0); \(hint)" } ?? hint
    }
    return error
  }
}
