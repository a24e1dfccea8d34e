import LarkspurHTTP
import LarkspurTransport

/// The `Proxy-Authorization` values for the CONNECT requests of one tunnel. The tunnel calls the methods one at a time,
/// as it does for every `TunnelAuthorizer`.
final class SessionTunnelAuthorizer: TunnelAuthorizer, @unchecked Sendable {
  private let challenges: ChallengeRouter
  private var talk: AuthenticationFlow?

  init(by challenges: ChallengeRouter) { self.challenges = challenges }

  func first(for request: ProxyChallenge.Request) -> String? {
    talk = challenges.conversation(about: request)
    return talk?.preemptiveValue()
  }

  func next(after challenge: ProxyChallenge) async -> String? {
    var talk = talk ?? challenges.conversation(about: challenge.request)
    var step = talk.challenged(challenge.values, canHashBody: true)
    while case .ask(let question) = step {
      step = talk.replied(await challenges.ask(question.challenge(response: nil)))
    }
    self.talk = talk
    if case .send(let value) = step { return value }
    return nil
  }

  func accepted(info: [String]) { talk?.accepted(info: info)?() }
}
