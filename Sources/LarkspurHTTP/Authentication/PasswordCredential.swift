import LarkspurBytes

/// A user and a password.
public struct PasswordCredential: Hashable, Sendable {
  /// The user's name.
  public let user: String
  /// The password, in plain text.
  public let password: String

  /// Creates a credential. Any text is accepted; see `isPrintable`.
  public init(user: String, password: String) {
    self.user = user
    self.password = password
  }

  /// Whether neither the user nor the password contains a control character. Base64 and hashes hide control characters,
  /// but users do not type them, and the server's software may take a line break or a NUL for the end of the text.
  public var isPrintable: Bool {
    (user.unicodeScalars + password.unicodeScalars).allSatisfy { $0.properties.generalCategory != .control }
  }
}

/// Omits the password from descriptions, so that printing a value that contains the credential does not reveal it.
extension PasswordCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "credential of \(user.debugDescription)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// The scheme Basic (RFC 7617).
public enum BasicAuthorization {
  /// The encoding of the credential. RFC 7617 2.1 defines UTF-8 only, and leaves the encoding to the client if the
  /// server does not ask for it.
  public enum Charset: Hashable, Sendable {
    case utf8
    case latin1
  }

  /// Returns the value of the field, or `nil` if the user's name contains a colon, the credential contains a control
  /// character, or `charset` cannot represent the credential.
  public static func value(_ credential: PasswordCredential, charset: Charset = .utf8) -> String? {
    // RFC 7617 2: the first colon ends the user's name.
    guard !credential.user.utf8.contains(ASCII.colon), credential.isPrintable else { return nil }
    let text = credential.user + ":" + credential.password
    switch charset {
    case .utf8: return "Basic " + Base64.encode(Array(text.utf8))
    case .latin1:
      let bytes = text.unicodeScalars.map { UInt8(exactly: $0.value) }
      return bytes.contains(nil) ? nil : "Basic " + Base64.encode(bytes.compactMap { $0 })
    }
  }
}
