/// Decides how one request answers the challenges of one origin or one proxy.
///
/// Theory of operation. A 401 (from an origin) or a 407 (from a proxy) brings challenges. The machine asks the owner
/// about the strongest of them. The owner gives a credential, and the request is sent again; or it rejects the
/// protection space, and the machine asks about the next one; or it has no credential, and the response is delivered
/// as it is. When the target refuses a credential, the machine asks again, with the number of refusals in that space. A
/// stale nonce is not a refusal: the machine sends the same credential with the new nonce.
///
/// ```
/// idle    sentPreemptively ----------------------------------------------> sent
/// idle    challenged: ask -----------------------------------------------> asking
/// asking  spaceRejected: ask about the next space ------------------------> asking
/// asking  credentialGiven: send ------------------------------------------> sent
/// sent    accepted: remember ---------------------------------------------> idle
/// sent    challenged: forget, ask ----------------------------------------> asking
/// sent    challenged, the nonce is stale: send ---------------------------> sent
/// sent    answerFailed: deliver ------------------------------------------> over
/// idle, sent, asking   no offer is left, or too many answers: deliver -----> over
/// asking  credentialDeclined: deliver ------------------------------------> over
/// asking  cancelled: cancel ----------------------------------------------> over
/// ```
///
/// The machine does not depend on URLs, connections, storages, the text of an answer, or anything else that the session
/// keeps. A machine serves one target: a redirect to another target begins with a new machine, and so with no history.
/// Invariants: at most `answersMax` `send` actions; one of `ask`, `send`, `deliver` and `cancel` follows each
/// challenge; an event that does not belong to the state changes nothing.
public struct AuthenticationMachine: Sendable {
  public enum State: Hashable, Sendable {
    case idle
    /// The owner is asked about the first offer; the others are next in line.
    case asking([AuthenticationOffer])
    /// The request carries the answer. `isPreemptive`: no challenge to this request required it; the answer is to an
    /// earlier challenge.
    case sent(AuthenticationAnswer, isPreemptive: Bool)
    case over
  }

  public enum Action: Hashable, Sendable {
    /// Find a credential for this.
    case ask(Question)
    /// Send the request again with this answer.
    case send(AuthenticationAnswer)
    /// The target accepts this answer: later requests may carry it preemptively.
    case remember(AuthenticationAnswer)
    /// The target refuses this answer.
    case forget(AuthenticationAnswer)
    /// The response with the challenge is the result.
    case deliver(Reason)
    /// Cancel the request.
    case cancel
  }

  public typealias Actions = [Action]

  public struct Question: Hashable, Sendable {
    public let offer: AuthenticationOffer
    /// Number of credentials that were refused in this space for this request.
    public let failures: Int

    public init(_ offer: AuthenticationOffer, failures: Int) {
      self.offer = offer
      self.failures = failures
    }
  }

  /// The reason why a challenge stays unanswered.
  public enum Reason: Hashable, Sendable {
    /// The response has no readable challenge.
    case noChallenge
    /// The response names only schemes that Larkspur does not support.
    case unsupported(schemes: [String])
    /// There is no credential, the owner rejected all spaces, or the remaining challenges need a hash of a body that
    /// cannot be hashed.
    case noCredential
    /// The credential cannot be written as the scheme requires.
    case credentialUnusable
    case tooManyAnswers(limit: Int)
  }

  /// Maximum number of answers that are sent for one request of the program. Without a limit, a server that refuses
  /// everything and an owner that answers every question would never stop.
  public static let answersMax = 20
  /// Maximum number of new nonces for one credential. Without a limit, a server that calls every nonce stale would keep
  /// the request in a loop.
  public static let renewalsMax = 3

  public private(set) var state = State.idle
  private var answers = 0
  private var renewals = 0
  /// Whether the owner has given a credential for this request.
  private var hasAsked = false
  private var failures: [AuthenticationOffer.Space: Int] = [:]
  private var rejected: Set<AuthenticationOffer.Space> = []

  public init() {}

  /// Notes that the request is sent with a stored answer, before any challenge.
  public mutating func sentPreemptively(_ answer: AuthenticationAnswer) {
    guard state == .idle else { return }
    state = .sent(answer, isPreemptive: true)
  }

  /// Handles a response with a challenge.
  public mutating func challenged(_ fields: [String], canHashBody: Bool = true, into actions: inout Actions) {
    let list = AuthenticationOffer.List(fields)
    switch state {
    case .idle: break
    case .sent(let answer, let isPreemptive):
      if let renewed = renewed(answer, from: list, isPreemptive: isPreemptive) {
        renewals += 1
        return send(renewed, &actions)
      }
      // A challenge of another space does not refuse the credential of this one. A refusal without a challenge does:
      // when the request is sent without the credential, the server may send a challenge again.
      if list.offers.isEmpty || list.offers.contains(where: { $0.space == answer.offer.space }) {
        // A preemptive answer does not count as a failed attempt: the owner has not been asked yet.
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

  /// Handles a response without a challenge: whatever its status is, the target has accepted the credential.
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

  /// Handles the owner's answer that there is no credential: the machine asks no further question.
  public mutating func credentialDeclined(into actions: inout Actions) {
    guard case .asking = state else { return }
    end(.deliver(.noCredential), &actions)
  }

  /// Handles the owner's rejection of this space. The machine asks about the next one.
  public mutating func spaceRejected(into actions: inout Actions) {
    guard case .asking(let offers) = state, let offer = offers.first else { return }
    rejected.insert(offer.space)
    ask(offers, &actions)
  }

  public mutating func cancelled(into actions: inout Actions) {
    guard case .asking = state else { return }
    end(.cancel, &actions)
  }

  /// Handles an answer that cannot be written: the user's name contains a colon, for example, or the hash is not
  /// available.
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

  /// Returns the answer with the same credential and the new nonce, or `nil` if the target has refused the credential
  /// and not the nonce.
  private func renewed(
    _ answer: AuthenticationAnswer, from list: AuthenticationOffer.List, isPreemptive: Bool
  ) -> AuthenticationAnswer? {
    guard renewals < Self.renewalsMax, answers < Self.answersMax, case .digest(let old) = answer.offer else {
      return nil
    }
    for case .digest(let new) in list.offers where new.realm == old.realm {
      // Some servers omit `stale` for a nonce that they have discarded. A preemptive answer with an older nonce is
      // therefore renewed once without `stale`; the renewed answer is no longer preemptive.
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
