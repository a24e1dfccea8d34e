/// What a handshake has come to.
public struct Handshake: Sendable {
  public let version: TLSVersion
  /// The cipher suite as the RFCs name it, such as `TLS_AES_256_GCM_SHA384`.
  public let cipher: String
  /// Whether an earlier session went on: then the certificates are those of its first handshake.
  public let isResumed: Bool
  public let trust: Trust
}
