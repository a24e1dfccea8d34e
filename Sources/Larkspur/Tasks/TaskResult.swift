import Foundation
import LarkspurTransport

/// What an async function waits for: the end of a task that runs as a part of the caller's.
///
/// It is set on the loop, and read when the caller's task has come back from there: nobody else knows it, and it needs no
/// lock. (It is not generic: what is released without its type being known costs 3,000 instructions a task.)
final class TaskResult: TurnSuccessor, @unchecked Sendable {
  /// The caller's task.
  var waiter: Waiter?
  var failure: (any Error)?
  var response: URLResponse?
  var data = Data()
  var file: URL?

  func turnIsOver() { waiter.take()?.wake() }

  private func success<Content>(_ content: Content?) throws -> (Content, URLResponse) {
    if let failure { throw failure }
    guard let content, let response else { throw URLError(.unknown) }
    return (content, response)
  }

  func takeData() throws -> (Data, URLResponse) { try success(data) }

  func takeFile() throws -> (URL, URLResponse) { try success(file) }
}
