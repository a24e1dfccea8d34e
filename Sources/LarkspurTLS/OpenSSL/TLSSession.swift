/// A session that can be resumed, with the verified certificates of its first handshake.
@safe
struct TLSSession: Sendable {
  let reference: Reference
  let trust: Trust
  /// Whether the session may be used only once: a session of TLS 1.3.
  let isUsedOnce: Bool
  /// The time at which the session expires, in seconds since 1970: the end of its lifetime, or the first expiry of a
  /// verified certificate, whichever is earlier.
  let validUntil: Int64

  /// Whether the session can be resumed. `false` once a connection with it has failed.
  var isResumable: Bool {
    // Safe: the session lives as long as `reference`.
    unsafe SSL_SESSION_is_resumable(reference.pointer) == 1
  }

  /// Takes ownership of a reference. Returns `nil` if the session cannot be resumed.
  @unsafe
  init?(taking pointer: OpaquePointer?, trust: Trust, date: Int64) {
    // Safe: the session is shared from here on, and OpenSSL locks the parts that it changes.
    guard let reference = unsafe Reference(pointer, releasedBy: { unsafe SSL_SESSION_free($0) }),
      unsafe SSL_SESSION_is_resumable(reference.pointer) == 1
    else { return nil }
    self.reference = reference
    self.trust = trust
    isUsedOnce = unsafe SSL_SESSION_get_protocol_version(reference.pointer) >= TLS1_3_VERSION
    validUntil = unsafe min(date + Int64(SSL_SESSION_get_timeout(reference.pointer)), trust.validUntil)
  }
}
