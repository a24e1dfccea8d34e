import LarkspurTransport

/// A tunnel authorizer that sends credentials only after a challenge.
package struct AskingAuthorizer: TunnelAuthorizer {
  private let ask: @Sendable (ProxyChallenge) async -> String?

  package init(_ ask: @escaping @Sendable (ProxyChallenge) async -> String?) { self.ask = ask }

  package func first(for request: ProxyChallenge.Request) -> String? { nil }
  package func next(after challenge: ProxyChallenge) async -> String? { await ask(challenge) }
  package func accepted(info: [String]) {}
}
