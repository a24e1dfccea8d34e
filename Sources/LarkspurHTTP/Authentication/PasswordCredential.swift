/// A user and a password.
public struct PasswordCredential: Hashable, Sendable {
  public let user: String
  public let password: String

  public init(user: String, password: String) {
    self.user = user
    self.password = password
  }

  /// Whether neither holds a control character. Base64 and hashes would hide them, but no person has typed them, and who
  /// unpacks them at the other end may take a line break or a NUL for an end.
  public var isPrintable: Bool {
    (user.unicodeScalars + password.unicodeScalars).allSatisfy { $0.properties.generalCategory != .control }
  }
}

/// Not by accident: a password would stand in the first log that prints what holds it.
extension PasswordCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "credential of \(user.debugDescription)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// The scheme Basic (RFC 7617).
public enum BasicAuthorization {
  /// How text becomes bytes. RFC 7617 2.1 knows UTF-8 only, and leaves to the client what is sent without it.
  public enum Charset: Hashable, Sendable {
    case utf8
    case latin1
  }

  /// The value of the field. Nil: the credential cannot be sent so.
  public static func value(_ credential: PasswordCredential, charset: Charset = .utf8) -> String? {
    // RFC 7617 2: the first colon ends the user's name.
    guard !credential.user.utf8.contains(ASCII.colon), credential.isPrintable else { return nil }
    let text = credential.user + ":" + credential.password
    switch charset {
    case .utf8: return "Basic " + base64(Array(text.utf8))
    case .latin1:
      let bytes = text.unicodeScalars.map { UInt8(exactly: $0.value) }
      return bytes.contains(nil) ? nil : "Basic " + base64(bytes.compactMap { $0 })
    }
  }
}
