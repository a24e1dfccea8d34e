import Foundation
import Synchronization

/// Updates that a delegate has not been notified of yet, and that do not delay the task. At most one call is on its way
/// to the delegate: if the delegate is slower than the network, its next call covers more.
final class CoalescedUpdates<Update: Mergeable>: Sendable {
  private struct State {
    var updates: [Update] = []
    /// Whether a call is on its way. On a concurrent queue a second call could overtake the first.
    var isNotifying = false
  }

  private let state = Mutex(State())

  /// Adds an update.
  ///
  /// - Returns: Whether a call has to be made. Otherwise the call that is on its way covers the update.
  func add(_ next: Update) -> Bool {
    state.withLock { state in
      let last = state.updates.indices.last
      if last.map({ state.updates[$0].merge(next) }) != true { state.updates.append(next) }
      defer { state.isNotifying = true }
      return !state.isNotifying
    }
  }

  /// The call was dropped on its way. The next call covers its updates.
  func dropped() { state.withLock { $0.isNotifying = false } }

  /// Returns the next update, or `nil` if the call is over.
  func take() -> Update? {
    state.withLock { state in
      guard state.updates.isEmpty else { return state.updates.removeFirst() }
      state.isNotifying = false
      return nil
    }
  }
}

protocol Mergeable: Sendable {
  /// Takes up the update that follows.
  ///
  /// - Returns: `false` if the update needs a separate call.
  mutating func merge(_ next: Self) -> Bool
}

/// An interim response.
struct InterimResponse: Mergeable {
  var response: HTTPURLResponse
  /// Whether the next mergeable response supersedes this one, as a later report of an upload's progress does.
  var isMergeable: Bool

  mutating func merge(_ next: InterimResponse) -> Bool {
    guard isMergeable, next.isMergeable else { return false }
    self = next
    return true
  }
}

/// A part of a body that has been sent.
struct SentBytes: Mergeable {
  var from: Int64
  var to: Int64

  /// Does not merge a part of a body that is sent again.
  mutating func merge(_ next: SentBytes) -> Bool {
    guard next.from == to else { return false }
    to = next.to
    return true
  }
}

/// A part of a response's content.
struct ReceivedBytes: Mergeable {
  /// Empty if the content is in a file.
  var data: Data
  var count: Int64
  /// The number of bytes received up to the end of this part.
  var total: Int64

  mutating func merge(_ next: ReceivedBytes) -> Bool {
    data += next.data
    count += next.count
    total = next.total
    return true
  }
}
