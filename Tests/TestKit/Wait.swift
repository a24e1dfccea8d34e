import Dispatch
import Testing

/// Waits for what has no signal: a weak reference, a file of another process, a value that changes without a call.
///
/// This is the one place where tests poll. A pause follows each look at the condition, so that a wait takes no core from
/// other tests. For a thing with a callback there is ``Event``.
public enum Wait {
  /// The seconds after which a wait fails.
  static let limit = 120.0

  /// Suspends until a condition holds, or the task is cancelled. Records an issue after 120 seconds.
  public static func until(
    _ expectation: String, file: String = #fileID, line: Int = #line, _ condition: () async throws -> Bool
  ) async rethrows {
    var pauses = Pauses()
    while try await !condition(), !Task.isCancelled {
      guard let pause = pauses.next() else { return fail(expectation, file, line) }
      await moment(microseconds: pause)
    }
  }

  /// Blocks until a condition holds. Records an issue after 120 seconds.
  public static func blocking(
    until expectation: String, file: String = #fileID, line: Int = #line, _ condition: () throws -> Bool
  ) rethrows {
    var pauses = Pauses()
    while try !condition() {
      guard let pause = pauses.next() else { return fail(expectation, file, line) }
      blockingMoment(microseconds: pause)
    }
  }

  /// Suspends for a moment, for a test that strikes at random times.
  public static func moment(microseconds: Int) async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) { continuation.resume() }
    }
  }

  /// Blocks for a moment, in which a fault could show itself.
  public static func blockingMoment(microseconds: Int) {
    _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .microseconds(microseconds))
  }

  private static func fail(_ expectation: String, _ file: String, _ line: Int) {
    Issue.record("\(file):\(line): never: \(expectation)")
  }

  /// Pauses that grow to two milliseconds, up to the limit.
  private struct Pauses {
    private let end = DispatchTime.now() + limit
    private var microseconds = 30

    mutating func next() -> Int? {
      guard DispatchTime.now() < end else { return nil }
      defer { microseconds = min(2 * microseconds, 2000) }
      return microseconds
    }
  }
}
