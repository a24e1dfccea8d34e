@_implementationOnly import CLarkspurOpenSSL

/// A session that can be resumed, with the trust that it was made in.
@safe
struct TLSSession: Sendable {
  let reference: Reference
  let trust: Trust
  /// TLS 1.3.
  let isUsedOnce: Bool
  /// Seconds since 1970: the server's lifetime for it, or the end of a certificate.
  let validUntil: Int64

  /// False once a connection of it has failed.
  var isResumable: Bool {
    // Safe: the session lives as long as `reference`.
    unsafe SSL_SESSION_is_resumable(reference.pointer) == 1
  }

  /// Takes a reference over. Nil: it cannot be resumed.
  @unsafe
  init?(taking pointer: OpaquePointer?, trust: Trust, date: Int64) {
    // Safe: the session is shared from here on, and OpenSSL locks what it changes in it.
    guard let reference = unsafe Reference(pointer, releasedBy: { unsafe SSL_SESSION_free($0) }),
      unsafe SSL_SESSION_is_resumable(reference.pointer) == 1
    else { return nil }
    self.reference = reference
    self.trust = trust
    isUsedOnce = unsafe larkspur_session_version(reference.pointer) >= TLS1_3_VERSION
    validUntil = unsafe min(date + Int64(SSL_SESSION_get_timeout(reference.pointer)), trust.validUntil)
  }
}
