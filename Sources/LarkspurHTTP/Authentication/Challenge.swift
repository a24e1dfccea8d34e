/// One challenge of a server or a proxy (RFC 9110 11.3), as it stands in the field.
public struct Challenge: Hashable, Sendable {
  public struct Parameter: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The value without quotes and escapes.
    public let value: String
  }

  /// The scheme in lower case.
  public let scheme: String
  /// The token68 after the scheme, or `nil` if the challenge has parameters or nothing.
  public let token68: String?
  /// The parameters in the order of the field. No two have one name.
  public let parameters: [Parameter]

  public subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

  // Limits on the challenges that are read and kept. Without them a hostile server could send thousands of challenges,
  // and the client compares each with the others.

  /// Maximum number of fields of one response. Later fields are not read.
  public static let fieldsMax = 32
  /// Maximum size of one field in bytes. A longer field is not read.
  public static let fieldBytesMax = 32 * 1024
  /// Maximum number of challenges of one response. Later challenges are not read.
  public static let challengesMax = 16
  /// Maximum number of parameters of one challenge. A challenge with more is ignored.
  public static let parametersMax = 32

  /// Reads the values of `WWW-Authenticate` or `Proxy-Authenticate`: one field or several, each with any number of
  /// challenges.
  ///
  /// A challenge that breaks the grammar is ignored, and so is the rest of its field, because the beginning of the next
  /// challenge cannot be found. Earlier challenges of that field, and those of other fields, are read. A challenge that
  /// names a parameter twice is ignored alone.
  public static func read(_ fields: [String]) -> [Challenge] {
    var challenges: [Challenge] = []
    for field in fields.prefix(fieldsMax) where field.utf8.count <= fieldBytesMax {
      var reader = ChallengeReader(field)
      while challenges.count < challengesMax, let challenge = reader.next() { challenges.append(challenge) }
    }
    return challenges
  }
}

/// The information that a response gives about the authentication of its request (RFC 9110 11.6.3).
public struct AuthenticationInfo: Hashable, Sendable {
  /// The nonce that the server asks the client to use next (RFC 7616 3.5), or `nil` if it names no nonce.
  public let nextNonce: String?

  /// Reads the values of `Authentication-Info` or `Proxy-Authentication-Info`. A field that breaks the grammar is
  /// ignored.
  public init(_ fields: [String]) {
    var nonce: String?
    for field in fields.prefix(Challenge.fieldsMax) where field.utf8.count <= Challenge.fieldBytesMax {
      var reader = ChallengeReader(field)
      nonce = nonce ?? reader.parameters()?.first { $0.name == "nextnonce" }?.value
    }
    nextNonce = nonce.flatMap { $0.isEmpty ? nil : $0 }
  }
}
