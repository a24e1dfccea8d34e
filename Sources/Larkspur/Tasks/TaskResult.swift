import Foundation
import Synchronization

/// What an async function waits for: a task that runs as a part of the caller's.
final class TaskResult<Content: Sendable>: Sendable {
  private let stored = Mutex<Result<(Content, URLResponse), any Error>?>(nil)

  func set(_ result: Result<(Content, URLResponse), any Error>) { stored.withLock { $0 = result } }

  func get() throws -> (Content, URLResponse) {
    guard let result = stored.withLock({ $0 }) else { throw URLError(.unknown) }
    return try result.get()
  }
}
