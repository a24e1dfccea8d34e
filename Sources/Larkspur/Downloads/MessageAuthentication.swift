import LarkspurTLS

/// HMAC with SHA-256 (RFC 2104): proof that bytes were made with the key.
enum MessageAuthentication {
  static let codeBytes = 32
  private static let blockBytes = 64

  /// - Returns: The authentication code, or `nil` if OpenSSL has no SHA-256 here.
  static func code(of message: [UInt8], key: [UInt8]) -> [UInt8]? {
    var key = key
    if key.count > blockBytes {
      guard let short = MessageDigest.of(key, .sha256) else { return nil }
      key = short
    }
    key += [UInt8](repeating: 0, count: blockBytes - key.count)
    guard let inner = MessageDigest.of(key.map { $0 ^ 0x36 } + message, .sha256) else { return nil }
    return MessageDigest.of(key.map { $0 ^ 0x5C } + inner, .sha256)
  }

  /// Compares two codes in a time that does not depend on the position of the first difference.
  static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    guard one.count == other.count else { return false }
    return zip(one, other).reduce(into: UInt8(0)) { $0 |= $1.0 ^ $1.1 } == 0
  }
}
