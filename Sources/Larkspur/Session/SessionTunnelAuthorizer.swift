import LarkspurHTTP
import LarkspurTransport

/// The `Proxy-Authorization` values for the CONNECT requests of one tunnel. The tunnel calls the methods one at a time,
/// as it does for every `TunnelAuthorizer`.
final class SessionTunnelAuthorizer: TunnelAuthorizer, @unchecked Sendable {
  private let challenges: ChallengeRouter
  private var flow: AuthenticationFlow?

  init(by challenges: ChallengeRouter) { self.challenges = challenges }

  func first(for request: ProxyChallenge.Request) -> String? {
    flow = challenges.authenticationFlow(about: request)
    return flow?.preemptiveValue()
  }

  func next(after challenge: ProxyChallenge) async -> String? {
    var flow = flow ?? challenges.authenticationFlow(about: challenge.request)
    var step = flow.challenged(challenge.values, canHashBody: true)
    while case .ask(let question) = step {
      step = flow.replied(await challenges.ask(question.challenge(response: nil)))
    }
    self.flow = flow
    if case .send(let value) = step { return value }
    return nil
  }

  func accepted(info: [String]) { flow?.accepted(info: info)?() }
}
