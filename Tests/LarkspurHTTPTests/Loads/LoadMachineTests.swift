import LarkspurHTTP
import Testing

/// Tests every state of `LoadMachine` with every fact.
@Suite struct LoadMachineTests {
  enum State: CaseIterable { case loading, redirecting, authenticating, over }

  enum Fact: CaseIterable {
    case success, unauthorized, proxyUnauthorized, redirection, redirectionWithoutPlace, redirectedByProtocol
    case redirectionFollowed, redirectionRefused, credentialGiven, credentialRefused
  }

  private static func apply(_ fact: Fact, to machine: inout LoadMachine) -> LoadMachine.Step {
    switch fact {
    case .success: machine.responseReceived(status: 200, redirects: false)
    case .unauthorized: machine.responseReceived(status: 401, redirects: false)
    case .proxyUnauthorized: machine.responseReceived(status: 407, redirects: false)
    case .redirection: machine.responseReceived(status: 302, redirects: true)
    case .redirectionWithoutPlace: machine.responseReceived(status: 302, redirects: false)
    case .redirectedByProtocol: machine.redirected()
    case .redirectionFollowed: machine.redirectionFollowed(toOtherOrigin: false)
    case .redirectionRefused: machine.redirectionRefused()
    case .credentialGiven: machine.credentialGiven()
    case .credentialRefused: machine.credentialRefused()
    }
  }

  private static func machine(in state: State) -> LoadMachine {
    var machine = LoadMachine()
    switch state {
    case .loading: break
    case .redirecting: _ = apply(.redirection, to: &machine)
    case .authenticating: _ = apply(.unauthorized, to: &machine)
    case .over: _ = apply(.success, to: &machine)
    }
    return machine
  }

  private static func expected(_ state: State, _ fact: Fact) -> LoadMachine.Step {
    switch (state, fact) {
    // A response counts in every state.
    case (_, .success), (_, .redirectionWithoutPlace): .deliver
    case (_, .unauthorized), (_, .proxyUnauthorized): .askCredential
    case (_, .redirection), (_, .redirectedByProtocol): .askRedirection
    // An answer counts only in the state that asks for it.
    case (.redirecting, .redirectionFollowed), (.authenticating, .credentialGiven): .load
    case (.redirecting, .redirectionRefused), (.authenticating, .credentialRefused): .deliver
    case (_, .redirectionFollowed), (_, .redirectionRefused), (_, .credentialGiven), (_, .credentialRefused):
      .fail(.nothingAsked)
    }
  }

  @Test(arguments: State.allCases, Fact.allCases)
  func everyStateKnowsEveryFact(state: State, fact: Fact) {
    var machine = Self.machine(in: state)
    #expect(Self.apply(fact, to: &machine) == Self.expected(state, fact))
    #expect(machine.redirectCount == (state == .redirecting && fact == .redirectionFollowed ? 1 : 0))
  }

  @Test(arguments: [0, 1, 20]) func redirectionsAreCounted(limit: Int) {
    var machine = LoadMachine(redirectsMax: limit)
    for _ in 0..<limit {
      #expect(machine.responseReceived(status: 302, redirects: true) == .askRedirection)
      #expect(machine.redirectionFollowed(toOtherOrigin: false) == .load)
      // Challenges between them do not count.
      #expect(machine.responseReceived(status: 401, redirects: false) == .askCredential)
      #expect(machine.credentialGiven() == .load)
    }
    #expect(machine.responseReceived(status: 302, redirects: true) == .fail(.tooManyRedirections))
  }

  @Test func anOriginThatWasLeftStaysLeft() {
    var machine = LoadMachine()
    for isElsewhere in [false, true, false] {
      _ = machine.redirected()
      _ = machine.redirectionFollowed(toOtherOrigin: isElsewhere)
    }
    #expect(machine.hasLeftOrigin)
  }
}
