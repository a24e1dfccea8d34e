import LarkspurBytes

/// A user and a password, as a URL names them (RFC 3986, section 3.2.1). Both are bytes without an encoding, which the
/// receiver interprets.
public struct UserInfo: Hashable, Sendable {
  public var user: [UInt8]
  public var password: [UInt8]

  public init(user: [UInt8], password: [UInt8]) {
    self.user = user
    self.password = password
  }

  /// Takes user and password off the front of an authority, and decodes them. RFC 3986 allows no `@` in a password. If a
  /// password has one all the same, the last `@` ends it.
  ///
  /// - Returns: `nil` if the authority names no user.
  public static func take(from authority: inout ArraySlice<UInt8>) -> UserInfo? {
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return nil }
    let text = authority[..<at]
    authority = authority[(at + 1)...]
    let user = text.prefix { $0 != ASCII.colon }
    return UserInfo(
      user: PercentCoding.decoded(user), password: PercentCoding.decoded(text[user.endIndex...].dropFirst()))
  }

  /// The bytes of `user:password`.
  public var bytes: [UInt8] { user + [ASCII.colon] + password }

  /// The value of `Authorization` or `Proxy-Authorization` (RFC 7617, section 2).
  public var basicAuthorization: String { "Basic " + Base64.encode(bytes) }
}
