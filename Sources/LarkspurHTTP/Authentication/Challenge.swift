/// What a server or a proxy asks for before it answers (RFC 9110 11.3), as it stands in the field.
public struct Challenge: Hashable, Sendable {
  public struct Parameter: Hashable, Sendable {
    /// In lower case.
    public let name: String
    /// Without quotes and escapes.
    public let value: String
  }

  /// In lower case.
  public let scheme: String
  /// Nil: it comes with parameters, or with nothing.
  public let token68: String?
  /// In their order. No name stands twice.
  public let parameters: [Parameter]

  public subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

  // What a peer may make us read and keep. A hostile server would otherwise send challenges by the thousand, each of
  // which is looked at and compared with the others.

  /// Fields of one response. Those behind it are not read.
  public static let fieldsMax = 32
  /// Bytes of one field. A longer one is not read.
  public static let fieldBytesMax = 32 * 1024
  /// Challenges of one response. Those behind it are not read.
  public static let challengesMax = 16
  /// Parameters of one challenge. One that has more does not count.
  public static let parametersMax = 32

  /// Reads the values of `WWW-Authenticate` or `Proxy-Authenticate`, one field or many, each with any number of challenges.
  ///
  /// A challenge that breaks the grammar does not count, nor does what stands behind it in the same field: where the
  /// next one begins cannot be told. Those before it and those of other fields do.
  public static func read(_ fields: [String]) -> [Challenge] {
    var challenges: [Challenge] = []
    for field in fields.prefix(fieldsMax) where field.utf8.count <= fieldBytesMax {
      var reader = ChallengeReader(field)
      while challenges.count < challengesMax, let challenge = reader.next() { challenges.append(challenge) }
    }
    return challenges
  }
}

/// What a response says about the authentication that its request has passed (RFC 9110 11.6.3).
public struct AuthenticationInfo: Hashable, Sendable {
  /// The nonce that the server would like to see next (RFC 7616 3.5).
  public let nextNonce: String?

  /// Reads the values of `Authentication-Info` or `Proxy-Authentication-Info`. What breaks the grammar says nothing.
  public init(_ fields: [String]) {
    var nonce: String?
    for field in fields.prefix(Challenge.fieldsMax) where field.utf8.count <= Challenge.fieldBytesMax {
      var reader = ChallengeReader(field)
      nonce = nonce ?? reader.parameters()?.first { $0.name == "nextnonce" }?.value
    }
    nextNonce = nonce.flatMap { $0.isEmpty ? nil : $0 }
  }
}
