/// Decides how the challenges of one origin, or of one proxy, to one request are answered.
///
/// Theory of operation. A 401 (an origin's) or a 407 (a proxy's) brings challenges. The owner is asked about the strongest
/// of them: it gives a credential, and the request is sent again; or it rejects the protection space, and is asked about the
/// next one; or it has none, and the response is delivered as it is. A credential that is refused is asked for anew, with the
/// number of refusals in that space. A nonce that was too old is no refusal: the same credential goes out with the new one.
///
/// ```
///  idle --challenged--> asking --credentialGiven: send--> sent --accepted: remember--> idle
///   |                    |  ^ |                            |
///   |                    |  +-+ spaceRejected              |
///   |                    |  ^                              |
///   |                    |  +-------- challenged: forget --+--+
///   |                    |                                 ^  | challenged, the nonce too old: send
///   |                    |                                 +--+
///   +--sentPreemptively--|-------------------------------> sent
///                        |
///                        +--credentialDeclined, no space left: deliver; cancelled: cancel--> over
/// ```
///
/// It does not know: URLs, connections, storages, how an answer becomes text, what else the session remembers. It is for
/// one target: a redirect to another one begins with a new machine, and so with nothing. Invariants: at most `answersMax`
/// requests are sent; one of `ask`, `send`, `deliver` and `cancel` follows each challenge; a fact that does not belong to
/// the state changes nothing.
public struct AuthenticationMachine: Sendable {
  public enum State: Hashable, Sendable {
    case idle
    /// The first is asked about, the others wait.
    case asking([AuthenticationOffer])
    /// `isPreemptive`: nobody had asked; the answer is to an earlier challenge.
    case sent(AuthenticationAnswer, isPreemptive: Bool)
    case over
  }

  public enum Action: Hashable, Sendable {
    /// Find a credential for this.
    case ask(Question)
    /// Send the request again with this answer.
    case send(AuthenticationAnswer)
    /// The target takes this answer: later requests may carry it unasked.
    case remember(AuthenticationAnswer)
    /// The target refuses this answer.
    case forget(AuthenticationAnswer)
    /// The response with the challenge is the result.
    case deliver(Reason)
    /// The request is given up.
    case cancel
  }

  public typealias Actions = [Action]

  public struct Question: Hashable, Sendable {
    public let offer: AuthenticationOffer
    /// Credentials that were refused in this space, for this request.
    public let failures: Int

    public init(_ offer: AuthenticationOffer, failures: Int) {
      self.offer = offer
      self.failures = failures
    }
  }

  /// Why there is no answer.
  public enum Reason: Hashable, Sendable {
    /// The response names no scheme at all, or none that can be read.
    case noChallenge
    /// It names only schemes that cannot be answered.
    case unsupported(schemes: [String])
    /// There is no credential, or all spaces were rejected.
    case noCredential
    /// The credential cannot be written as the scheme wants it.
    case credentialUnusable
    case tooManyAnswers(limit: Int)
  }

  /// Requests with a credential, for one request of the user's. A server that refuses everything and an owner with an
  /// answer to every question would go on for ever.
  public static let answersMax = 20
  /// New nonces for one credential. A server that finds every nonce too old is never asked anything else.
  public static let renewalsMax = 3

  public private(set) var state = State.idle
  private var answers = 0
  private var renewals = 0
  /// Somebody has given a credential for this request.
  private var hasAsked = false
  private var failures: [AuthenticationOffer.Space: Int] = [:]
  private var rejected: Set<AuthenticationOffer.Space> = []

  public init() {}

  /// The request goes out with an answer that nobody asked for.
  public mutating func sentPreemptively(_ answer: AuthenticationAnswer) {
    guard state == .idle else { return }
    state = .sent(answer, isPreemptive: true)
  }

  /// The target wants to know who we are.
  ///
  /// - Parameters:
  ///   - fields: The values of `WWW-Authenticate` or `Proxy-Authenticate`.
  ///   - canHashBody: Whether the request's body can be read before it is sent, which Digest's `auth-int` needs.
  public mutating func challenged(_ fields: [String], canHashBody: Bool = true, into actions: inout Actions) {
    let list = AuthenticationOffer.List(fields)
    switch state {
    case .idle: break
    case .sent(let answer, let isPreemptive):
      if let renewed = renewed(answer, from: list, isPreemptive: isPreemptive) {
        renewals += 1
        return send(renewed, &actions)
      }
      // A challenge of another space says nothing about the credential of this one. A refusal without a challenge does:
      // without the credential the server may challenge again.
      if list.offers.isEmpty || list.offers.contains(where: { $0.space == answer.offer.space }) {
        // What was sent without asking is nobody's failed attempt.
        if hasAsked { failures[answer.offer.space, default: 0] += 1 }
        actions.append(.forget(answer))
      }
    case .asking, .over: return
    }
    guard !list.offers.isEmpty else {
      let reason = list.unsupported.isEmpty ? Reason.noChallenge : .unsupported(schemes: list.unsupported)
      return end(.deliver(reason), &actions)
    }
    ask(list.offers.filter { canHashBody || !$0.needsBodyHash }, &actions)
  }

  /// The target has answered otherwise than with a challenge: whatever it says, it has let the credential pass.
  public mutating func accepted(into actions: inout Actions) {
    guard case .sent(let answer, _) = state else { return }
    state = .idle
    actions.append(.remember(answer))
  }

  public mutating func credentialGiven(_ credential: PasswordCredential, into actions: inout Actions) {
    guard case .asking(let offers) = state, let offer = offers.first else { return }
    renewals = 0
    hasAsked = true
    send(AuthenticationAnswer(offer, credential), &actions)
  }

  /// There is no credential, and nobody is to be asked any more.
  public mutating func credentialDeclined(into actions: inout Actions) {
    guard case .asking = state else { return }
    end(.deliver(.noCredential), &actions)
  }

  /// The owner has nothing for this space, but may have for another one.
  public mutating func spaceRejected(into actions: inout Actions) {
    guard case .asking(let offers) = state, let offer = offers.first else { return }
    rejected.insert(offer.space)
    ask(offers, &actions)
  }

  public mutating func cancelled(into actions: inout Actions) {
    guard case .asking = state else { return }
    end(.cancel, &actions)
  }

  /// The answer that was to be sent cannot be written: the user's name has a colon, say, or there is no such hash.
  public mutating func answerFailed(into actions: inout Actions) {
    guard case .sent(_, isPreemptive: false) = state else { return }
    end(.deliver(.credentialUnusable), &actions)
  }

  // MARK: -

  private mutating func ask(_ offers: [AuthenticationOffer], _ actions: inout Actions) {
    let left = offers.filter { !rejected.contains($0.space) }
    guard let first = left.first else { return end(.deliver(.noCredential), &actions) }
    guard answers < Self.answersMax else {
      return end(.deliver(.tooManyAnswers(limit: Self.answersMax)), &actions)
    }
    state = .asking(left)
    actions.append(.ask(Question(first, failures: failures[first.space, default: 0])))
  }

  private mutating func send(_ answer: AuthenticationAnswer, _ actions: inout Actions) {
    answers += 1
    state = .sent(answer, isPreemptive: false)
    actions.append(.send(answer))
  }

  private mutating func end(_ action: Action, _ actions: inout Actions) {
    state = .over
    actions.append(action)
  }

  /// The same credential for a new nonce. Nil: the target has refused the credential, not the nonce.
  private func renewed(
    _ answer: AuthenticationAnswer, from list: AuthenticationOffer.List, isPreemptive: Bool
  ) -> AuthenticationAnswer? {
    guard renewals < Self.renewalsMax, answers < Self.answersMax, case .digest(let old) = answer.offer else {
      return nil
    }
    for case .digest(let new) in list.offers where new.realm == old.realm {
      // Not every server says `stale` of a nonce that it has forgotten. One that was used before gets the benefit of
      // the doubt, once: the next answer is to a question.
      if new.isStale || isPreemptive && new.nonce != old.nonce {
        return AuthenticationAnswer(.digest(new), answer.credential)
      }
    }
    return nil
  }
}

extension AuthenticationOffer {
  fileprivate var needsBodyHash: Bool {
    if case .digest(let challenge) = self { challenge.quality == .integrity } else { false }
  }
}
