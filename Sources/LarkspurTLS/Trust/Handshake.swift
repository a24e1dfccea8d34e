/// What a handshake has come to.
package struct Handshake: Sendable {
  package let version: TLSVersion
  /// The cipher suite as the RFCs name it, such as `TLS_AES_256_GCM_SHA384`.
  package let cipher: String
  /// Whether an earlier session went on: then the certificates are those of its first handshake.
  package let isResumed: Bool
  package let trust: Trust
}
