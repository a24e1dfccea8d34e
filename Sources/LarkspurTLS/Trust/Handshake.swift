/// The result of a handshake.
public struct Handshake: Sendable {
  public let version: TLSVersion
  /// The name of the cipher suite in the RFCs, such as `TLS_AES_256_GCM_SHA384`.
  public let cipher: String
  /// Whether an earlier session was resumed. The certificates are then those of that session's first handshake.
  public let isResumed: Bool
  public let trust: Trust
}
