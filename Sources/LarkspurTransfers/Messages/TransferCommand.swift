/// What a program tells the executor of a background session.
///
/// Commands are carried out in their order, and none waits for an answer. A command for a task that does not exist or
/// has ended has no effect: the event of its end is on its way.
public enum TransferCommand: Codable, Hashable, Sendable {
  /// Creates a task that has been resumed. The record has the task's identifier, which no earlier task has had.
  case create(TransferRecord)
  case resume(task: Int)
  case suspend(task: Int)
  /// Ends the task with `URLError.cancelled`.
  ///
  /// - Parameter isKeepingContent: Whether the received bytes stay, so that another task can continue from them. The
  ///   program takes the file before it acknowledges the end.
  case cancel(task: Int, isKeepingContent: Bool)
  /// Replaces what the program can change at any time.
  case update(task: Int, TransferProperties)
  /// The program has been given the first `count` events of the task's record. When a task that has ended has no more
  /// events, the task and its file are removed.
  case acknowledge(task: Int, count: Int)
  /// Answers a question. An answer to a question that is not open has no effect.
  case answer(question: UInt64, TransferAnswer)
}

/// The properties of a task that the program can change at any time.
public struct TransferProperties: Codable, Hashable, Sendable {
  public var description: String?
  /// The priority, from 0 to 1.
  public var priority: Double
  /// -1 stands for an unknown number.
  public var clientExpectsToSend: Int64
  public var clientExpectsToReceive: Int64

  public init(
    description: String?, priority: Double, clientExpectsToSend: Int64 = -1, clientExpectsToReceive: Int64 = -1
  ) {
    self.description = description
    self.priority = priority
    self.clientExpectsToSend = clientExpectsToSend
    self.clientExpectsToReceive = clientExpectsToReceive
  }
}
