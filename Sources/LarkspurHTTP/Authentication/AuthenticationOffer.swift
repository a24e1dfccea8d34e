/// A challenge that can be answered.
public enum AuthenticationOffer: Hashable, Sendable {
  /// Nil: the server names no realm, against RFC 7617 2. Some do not.
  case basic(realm: String?)
  case digest(DigestChallenge)

  public enum Method: Hashable, Sendable {
    case basic
    case digest
  }

  /// What a credential is asked for. Two challenges of one space are one question.
  public struct Space: Hashable, Sendable {
    public let method: Method
    public let realm: String?
  }

  public var space: Space {
    switch self {
    case .basic(let realm): Space(method: .basic, realm: realm)
    case .digest(let challenge): Space(method: .digest, realm: challenge.realm)
    }
  }

  /// The higher the better. Among equals the server's order counts (RFC 7616 3.7).
  private var strength: Int {
    switch self {
    case .basic: 0
    case .digest(let challenge): challenge.algorithm.isWeak ? 1 : 2
    }
  }

  /// What a response offers.
  public struct List: Hashable, Sendable {
    /// The strongest first.
    public var offers: [AuthenticationOffer]
    /// Schemes that cannot be answered, in lower case: Negotiate and NTLM, a Digest with an unknown algorithm.
    public var unsupported: [String]

    /// Reads the values of `WWW-Authenticate` or `Proxy-Authenticate`.
    public init(_ fields: [String]) {
      offers = []
      unsupported = []
      for challenge in Challenge.read(fields) {
        if let digest = DigestChallenge(challenge) {
          offers.append(.digest(digest))
        } else if challenge.scheme == "basic" {
          offers.append(.basic(realm: challenge["realm"]))
        } else {
          unsupported.append(challenge.scheme)
        }
      }
      // RFC 9110 11.6.1: the client takes the strongest that it knows.
      let ranked = offers.enumerated().sorted { ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset) }
      offers = ranked.map(\.element)
    }
  }
}

/// A challenge and what answers it.
public struct AuthenticationAnswer: Hashable, Sendable {
  public var offer: AuthenticationOffer
  public let credential: PasswordCredential

  public init(_ offer: AuthenticationOffer, _ credential: PasswordCredential) {
    self.offer = offer
    self.credential = credential
  }
}
