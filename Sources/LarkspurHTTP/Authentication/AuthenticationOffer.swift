/// A challenge of a scheme that Larkspur supports.
public enum AuthenticationOffer: Hashable, Sendable {
  /// The Basic scheme. `realm` is `nil` if the server names no realm, as some do against RFC 7617 2.
  case basic(realm: String?)
  case digest(DigestChallenge)

  public enum Method: Hashable, Sendable {
    case basic
    case digest
  }

  /// A protection space: the unit that a credential is asked for. The owner is asked once about two challenges of one
  /// space.
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

  /// The rank of the scheme; higher is better. Among offers of one rank the server's order counts (RFC 7616 3.7).
  private var strength: Int {
    switch self {
    case .basic: 0
    case .digest(let challenge): challenge.algorithm.isWeak ? 1 : 2
    }
  }

  /// The challenges of one response.
  public struct List: Hashable, Sendable {
    /// The supported challenges, strongest first.
    public var offers: [AuthenticationOffer]
    /// Unsupported schemes, in lower case: Negotiate and NTLM, for example, or a Digest with an unknown algorithm.
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
      // RFC 9110 11.6.1: the client uses the strongest scheme that it supports.
      let ranked = offers.enumerated().sorted { ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset) }
      offers = ranked.map(\.element)
    }
  }
}

/// A challenge and the credential that answers it.
public struct AuthenticationAnswer: Hashable, Sendable {
  public var offer: AuthenticationOffer
  public let credential: PasswordCredential

  public init(_ offer: AuthenticationOffer, _ credential: PasswordCredential) {
    self.offer = offer
    self.credential = credential
  }
}
