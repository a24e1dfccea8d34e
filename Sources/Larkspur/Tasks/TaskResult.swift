import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTransport
import Synchronization

/// What an async function waits for: the end of its task.
///
/// It is set on the loop, and read when the caller's task has been woken: nobody else knows it, and it needs no lock. (It
/// is not generic: what is released without its type being known costs 3,000 instructions a task.)
final class TaskResult: TurnSuccessor, AwaitedByGuest, @unchecked Sendable {
  /// The caller's task.
  var waiter: Waiter?
  var callersPriority: TaskPriority.RawValue?
  /// The caller is on the loop, and goes on in the turn that brings the result.
  var isCallersOwn = false
  /// When it could go on, if `loop` wants to know.
  private(set) var completed = Deadline.never
  /// Set before anybody waits.
  var loop: ClientLoop?
  /// It had come before the caller's task could suspend.
  var cameAtOnce = false
  var failure: (any Error)?
  var response: URLResponse?
  var data = Data()
  var file: URL?

  /// Waking is order enough; this is one that ThreadSanitizer sees, too.
  private let isComplete = Atomic(false)

  func turnIsOver() {
    if let loop { completed = loop.kernel.now() }
    isComplete.store(true, ordering: .releasing)
    waiter.take()?.wake()
  }

  var hasCome: Bool { isComplete.load(ordering: .sequentiallyConsistent) }

  private func success<Content>(_ content: @autoclosure () -> Content?) throws -> (Content, URLResponse) {
    guard isComplete.load(ordering: .acquiring) else { throw URLError(.unknown) }
    if let failure { throw failure }
    guard let content = content(), let response else { throw URLError(.unknown) }
    return (content, response)
  }

  func takeData() throws -> (Data, URLResponse) { try success(data) }

  func takeFile() throws -> (URL, URLResponse) { try success(file) }
}
