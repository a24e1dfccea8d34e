import Foundation
import Larkspur
import Synchronization

/// The sender of a challenge that a block answers. Only the first answer counts. If the block releases the challenge
/// without an answer, the challenge is cancelled, because no answer can come any more.
final class ChallengeAnswer: NSObject, URLAuthenticationChallengeSender {
  typealias Reply = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void

  private let reply: Mutex<Reply?>

  init(_ reply: @escaping Reply) { self.reply = Mutex(reply) }

  deinit { answer(.cancelAuthenticationChallenge, nil) }

  private func answer(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    let reply = reply.withLock { reply in
      defer { reply = nil }
      return reply
    }
    reply?(disposition, credential)
  }

  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
    answer(.useCredential, credential)
  }

  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { answer(.useCredential, nil) }

  func cancel(_ challenge: URLAuthenticationChallenge) { answer(.cancelAuthenticationChallenge, nil) }

  func performDefaultHandling(for challenge: URLAuthenticationChallenge) { answer(.performDefaultHandling, nil) }

  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
    answer(.rejectProtectionSpace, nil)
  }
}
