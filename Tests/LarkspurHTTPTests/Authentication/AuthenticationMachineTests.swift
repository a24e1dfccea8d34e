import LarkspurHTTP
import Testing

@Suite struct AuthenticationMachineTests {
  typealias Action = AuthenticationMachine.Action

  enum Fact: CaseIterable {
    case preemptive, basic, otherBasic, digest, digestStale, digestOtherNonce, both, unsupported, nothing, integrity
    case accepted, given, declined, rejected, cancelled, failed

    var fields: [String]? {
      switch self {
      case .basic: ["Basic realm=b"]
      case .otherBasic: ["Basic realm=other"]
      case .digest: ["Digest realm=d, nonce=1"]
      case .digestStale: ["Digest realm=d, nonce=2, stale=true"]
      case .digestOtherNonce: ["Digest realm=d, nonce=3"]
      case .both: ["Basic realm=b, Digest realm=d, nonce=1, Digest realm=d, nonce=1, algorithm=SHA-256"]
      case .unsupported: ["Negotiate", "NTLM"]
      case .nothing: []
      case .integrity: ["Digest realm=d, nonce=1, qop=auth-int"]
      default: nil
      }
    }
  }

  static let credential = PasswordCredential(user: "u", password: "p")

  static func offer(_ field: String) -> AuthenticationOffer {
    AuthenticationOffer.List([field]).offers.first ?? .basic(realm: nil)
  }
  static let basic = offer("Basic realm=b")
  static let digest = offer("Digest realm=d, nonce=1")

  static func feed(_ fact: Fact, to machine: inout AuthenticationMachine, into actions: inout [Action]) {
    switch fact {
    case .preemptive: machine.sentPreemptively(AuthenticationAnswer(digest, credential))
    case .accepted: machine.accepted(into: &actions)
    case .given: machine.credentialGiven(credential, into: &actions)
    case .declined: machine.credentialDeclined(into: &actions)
    case .rejected: machine.spaceRejected(into: &actions)
    case .cancelled: machine.cancelled(into: &actions)
    case .failed: machine.answerFailed(into: &actions)
    default: machine.challenged(fact.fields ?? [], canHashBody: false, into: &actions)
    }
  }

  static func run(_ facts: [Fact]) -> (machine: AuthenticationMachine, last: [Action]) {
    var machine = AuthenticationMachine()
    var last: [Action] = []
    for fact in facts {
      last = []
      feed(fact, to: &machine, into: &last)
    }
    return (machine, last)
  }

  static func ask(_ offer: AuthenticationOffer, _ failures: Int = 0) -> Action {
    .ask(.init(offer, failures: failures))
  }
  static func answer(_ offer: AuthenticationOffer) -> AuthenticationAnswer { AuthenticationAnswer(offer, credential) }

  // MARK: - Questions to the user

  @Test func aPasswordIsRight() {
    #expect(Self.run([.basic]).last == [Self.ask(Self.basic)])
    #expect(Self.run([.basic, .given]).last == [.send(Self.answer(Self.basic))])
    let end = Self.run([.basic, .given, .accepted])
    #expect(end.last == [.remember(Self.answer(Self.basic))])
    #expect(end.machine.state == .idle)
  }

  @Test func aPasswordIsWrong() {
    let refused = [Action.forget(Self.answer(Self.basic)), Self.ask(Self.basic, 1)]
    #expect(Self.run([.basic, .given, .basic]).last == refused)
    #expect(Self.run([.basic, .given, .basic, .given, .basic]).last.last == Self.ask(Self.basic, 2))
    #expect(Self.run([.basic, .given, .basic, .declined]).last == [.deliver(.noCredential)])
  }

  @Test func anotherRealmIsNoFailure() {
    let other = Self.offer("Basic realm=other")
    #expect(Self.run([.basic, .given, .otherBasic]).last == [Self.ask(other)])
    // Each protection space has its own failure count.
    #expect(Self.run([.basic, .given, .basic, .given, .otherBasic, .given, .basic]).last == [Self.ask(Self.basic, 1)])
  }

  @Test func rejectedSpaces() {
    let sha = Self.offer("Digest realm=d, nonce=1, algorithm=SHA-256")
    #expect(Self.run([.both]).last == [Self.ask(sha)])
    // The weaker algorithm of a rejected space is not asked about.
    #expect(Self.run([.both, .rejected]).last == [Self.ask(Self.basic)])
    #expect(Self.run([.both, .rejected, .rejected]).last == [.deliver(.noCredential)])
    // A rejected space is not asked about again.
    #expect(Self.run([.both, .rejected, .given, .both]).last.last == Self.ask(Self.basic, 1))
    #expect(Self.run([.both, .rejected, .given, .digest]).last == [.deliver(.noCredential)])
  }

  @Test func noAnswerIsPossible() {
    #expect(Self.run([.unsupported]).last == [.deliver(.unsupported(schemes: ["negotiate", "ntlm"]))])
    #expect(Self.run([.nothing]).last == [.deliver(.noChallenge)])
    #expect(Self.run([.basic, .given, .failed]).last == [.deliver(.credentialUnusable)])
    #expect(Self.run([.basic, .cancelled]).last == [.cancel])
    // The body cannot be hashed, so `auth-int` cannot be answered.
    #expect(Self.run([.integrity]).last == [.deliver(.noCredential)])
    var machine = AuthenticationMachine()
    var actions: [Action] = []
    machine.challenged(Fact.integrity.fields ?? [], canHashBody: true, into: &actions)
    #expect(actions == [Self.ask(Self.offer("Digest realm=d, nonce=1, qop=auth-int"))])
  }

  /// A credential that a server refuses without another challenge that can be answered is forgotten, so that the next
  /// request is sent without it.
  @Test func aRefusalWithoutAChallenge() {
    let forgotten = Action.forget(Self.answer(Self.basic))
    #expect(Self.run([.basic, .given, .nothing]).last == [forgotten, .deliver(.noChallenge)])
    let digest = Action.forget(Self.answer(Self.digest))
    #expect(
      Self.run([.preemptive, .unsupported]).last
        == [digest, .deliver(.unsupported(schemes: ["negotiate", "ntlm"]))])
  }

  // MARK: - Nonces

  @Test func aStaleNonceNeedsNoQuestion() {
    let renewed = Self.offer("Digest realm=d, nonce=2, stale=true")
    #expect(Self.run([.digest, .given, .digestStale]).last == [.send(Self.answer(renewed))])
    #expect(Self.run([.preemptive, .digestStale]).last == [.send(Self.answer(renewed))])
    // Without `stale`, a new challenge for a fresh nonce is a refusal.
    let other = Self.offer("Digest realm=d, nonce=3")
    #expect(Self.run([.digest, .given, .digestOtherNonce]).last.last == Self.ask(other, 1))
    // An old nonce gets a second chance with a new nonce, and no third.
    #expect(Self.run([.preemptive, .digestOtherNonce]).last == [.send(Self.answer(other))])
    // A refusal of preemptive credentials does not count as a failure, because no delegate was asked.
    #expect(Self.run([.preemptive, .digestOtherNonce, .digestOtherNonce]).last.last == Self.ask(other))
    #expect(Self.run([.preemptive, .digest]).last.last == Self.ask(Self.digest))
    // `stale` means nothing for a space to which nothing was sent.
    #expect(Self.run([.basic, .given, .digestStale]).last == [Self.ask(renewed)])
  }

  @Test func endlessStaleness() {
    var facts: [Fact] = [.digest, .given]
    for _ in 1...AuthenticationMachine.renewalsMax {
      facts.append(.digestStale)
      #expect(Self.run(facts).last.count == 1)
    }
    #expect(
      Self.run(facts + [.digestStale]).last.last == Self.ask(Self.offer("Digest realm=d, nonce=2, stale=true"), 1))
  }

  @Test func endlessAnswers() {
    var facts: [Fact] = []
    for _ in 1...AuthenticationMachine.answersMax { facts += [.basic, .given] }
    #expect(Self.run(facts).last == [.send(Self.answer(Self.basic))])
    #expect(Self.run(facts + [.accepted]).last == [.remember(Self.answer(Self.basic))])
    let limit = AuthenticationMachine.answersMax
    #expect(
      Self.run(facts + [.basic]).last == [.forget(Self.answer(Self.basic)), .deliver(.tooManyAnswers(limit: limit))])
    // A new realm each time does not evade the limit.
    facts = []
    for _ in 1...limit / 2 { facts += [.basic, .given, .otherBasic, .given] }
    #expect(Self.run(facts + [.basic]).last.last == .deliver(.tooManyAnswers(limit: limit)))
  }

  // MARK: - Every state, every fact

  /// The facts that lead to each state.
  static let ways: [[Fact]] = [
    [], [.basic], [.both], [.basic, .given], [.digest, .given], [.preemptive], [.digest, .given, .digestStale],
    [.basic, .given, .accepted], [.basic, .declined], [.basic, .cancelled], [.nothing],
  ]

  @Test(arguments: ways) func everyFact(way: [Fact]) {
    for fact in Fact.allCases {
      let before = Self.run(way).machine.state
      let (machine, actions) = Self.run(way + [fact])
      let about: Comment = "\(way) + \(fact): \(actions)"
      let isChallenge = fact.fields != nil
      switch before {
      case .over: #expect(actions.isEmpty && machine.state == .over, about)
      case .idle:
        if !isChallenge, fact != .preemptive { #expect(actions.isEmpty && machine.state == before, about) }
      case .asking:
        if isChallenge || [.preemptive, .accepted, .failed].contains(fact) {
          #expect(actions.isEmpty && machine.state == before, about)
        }
      case .sent:
        if [.preemptive, .given, .declined, .rejected, .cancelled].contains(fact) {
          #expect(actions.isEmpty && machine.state == before, about)
        }
      }
      // Each challenge that counts leads to exactly one decision, which is the last action.
      let decisions = actions.filter { action in
        switch action {
        case .ask, .send, .deliver, .cancel: true
        case .remember, .forget: false
        }
      }
      #expect(decisions.count <= 1, about)
      if isChallenge, before != .over, !before.isAsking { #expect(decisions.count == 1, about) }
      if let decision = decisions.first { #expect(actions.last == decision, about) }
      switch decisions.first {
      case .ask: #expect(machine.state.isAsking, about)
      case .send(let answer): #expect(machine.state == .sent(answer, isPreemptive: false), about)
      case .deliver, .cancel: #expect(machine.state == .over, about)
      default: break
      }
    }
  }
}

extension AuthenticationMachine.State {
  fileprivate var isAsking: Bool { if case .asking = self { true } else { false } }
}
