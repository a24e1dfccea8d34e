import LarkspurHTTP
import LarkspurIO

/// A source of addresses for names. The default is the system's resolver; another source can query its own server, or
/// make up the answers.
///
/// A resolver calls its source on any thread, one call at a time, and never while it holds one of its locks.
public protocol NameSource: Sendable {
  /// Starts to look up a name, without blocking. The source calls `question.answer` with the outcome, during this call
  /// or later.
  func start(_ question: NameQuestion)

  /// Notifies the source that no caller waits for the answer any more. The default returns `false`.
  ///
  /// - Returns: `true` if the look-up is cancelled and will not be answered; `false` if it continues and will be
  ///   answered.
  func cancel(_ question: NameQuestion) -> Bool
}

extension NameSource {
  public func cancel(_ question: NameQuestion) -> Bool { false }
}

/// One look-up that a resolver requests from its source.
public struct NameQuestion: Sendable {
  /// The number of the question, different for each question of a resolver.
  public let number: UInt64
  public let name: HostName
  let resolver: Resolver

  /// Reports the outcome, on any thread. The first answer counts. The ports of the addresses are ignored.
  public func answer(_ answer: NameAnswer<[SocketAddress]>) { resolver.answered(self, answer) }
}
