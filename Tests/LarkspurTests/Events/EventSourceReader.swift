import Foundation
import Larkspur
import LarkspurTestSupport

/// A task that reads events. Its fields belong to the thread that runs the ticks.
final class EventSourceReader: @unchecked Sendable {
  let number: Int
  /// The number of events after which the reader leaves.
  let leavesAfter: Int
  /// Whether the reader pauses behind each event.
  var isSlow: Bool
  var running: Running<Void>?
  /// The number of events that have come.
  var count = 0
  private(set) var hasBegun = false
  /// The number of events that may come, once the reader has been stopped.
  private(set) var countMax: Int?
  /// What the server's latest response makes of the source.
  var verdict: ScriptedEventServer.Verdict?
  var isClosed = false
  var isReplaced = false
  private var isCancelled = false
  private var beganClosed = false
  private var continuation: CheckedContinuation<Void, Never>?

  init(_ number: Int, leavesAfter: Int, isSlow: Bool) {
    (self.number, self.leavesAfter, self.isSlow) = (number, leavesAfter, isSlow)
  }

  var isOver: Bool { running?.isOver ?? false }
  var isPaused: Bool { continuation != nil }
  var isStopped: Bool { countMax != nil }

  func start(isClosed: Bool) { (hasBegun, beganClosed) = (true, isClosed) }

  func cancel() {
    stop { $0.isCancelled = true }
    running?.cancel()
  }

  /// Notes that the reader gets no more events, unless it is over.
  func stop(_ note: (EventSourceReader) -> Void) {
    guard !isOver else { return }
    note(self)
    countMax = countMax ?? count
  }

  func pause() async {
    if isSlow { await withCheckedContinuation { continuation = $0 } }
  }

  func resume() { continuation.take()?.resume() }

  /// Whether the outcome has a cause.
  var hasRightEnd: Bool {
    var causes: [URLError.Code?] = []
    if beganClosed || isClosed || isReplaced || count == leavesAfter { causes.append(nil) }
    if isCancelled { causes.append(.cancelled) }
    switch verdict {
    case .ended: causes.append(nil)
    case .refused: causes.append(.badServerResponse)
    case .tooLarge: causes.append(.dataLengthExceedsMaximum)
    case nil: break
    }
    switch running?.result {
    case .success: return causes.contains(nil)
    case .failure(let error): return causes.contains((error as? URLError)?.code ?? .unknown)
    case nil: return false
    }
  }
}
