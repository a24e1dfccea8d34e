import LarkspurHTTP
import LarkspurIO

/// Where addresses come from. The system's resolver is the default; others can ask a server of their own, or make the
/// answers up.
///
/// A resolver calls its source on any thread, one call at a time, and never inside one of its locks.
public protocol NameSource: Sendable {
  /// Begins to look a name up, without blocking. `question.answer` takes the outcome, during this call or later.
  func start(_ question: NameQuestion)

  /// Nobody waits for the answer any more. True: it will not come. False: the look-up goes on and will be answered.
  func cancel(_ question: NameQuestion) -> Bool
}

extension NameSource {
  public func cancel(_ question: NameQuestion) -> Bool { false }
}

/// One look-up that a source is asked to make.
public struct NameQuestion: Sendable {
  /// Another one for each question of a resolver's.
  public let number: UInt64
  public let name: HostName
  let resolver: Resolver

  /// What has been found out. The ports do not count. Any thread; the first answer counts.
  public func answer(_ answer: NameAnswer<[SocketAddress]>) { resolver.answered(self, answer) }
}
