import Foundation
import Synchronization

/// What a delegate has not been told of yet, which does not hold the task up. There is one call at most on its way to him: one that
/// is slower than the network hears of more at a time, and not of ever older things.
final class Untold<News: Mergeable>: Sendable {
  private struct State {
    var news: [News] = []
    /// On a concurrent queue a second call could overtake the first.
    var isTelling = false
  }

  private let state = Mutex(State())

  /// Whether a call has to be made. Otherwise the one that is on its way says it as well.
  func add(_ next: News) -> Bool {
    state.withLock { state in
      let last = state.news.indices.last
      if last.map({ state.news[$0].merge(next) }) != true { state.news.append(next) }
      defer { state.isTelling = true }
      return !state.isTelling
    }
  }

  /// The call was dropped on its way: what it had to say is the next one's.
  func callIsLost() { state.withLock { $0.isTelling = false } }

  /// What is to be said next. Nil: all has been said, and the call is over.
  func take() -> News? {
    state.withLock { state in
      guard state.news.isEmpty else { return state.news.removeFirst() }
      state.isTelling = false
      return nil
    }
  }
}

protocol Mergeable: Sendable {
  /// Says what comes next as well. False: that is told by itself.
  mutating func merge(_ next: Self) -> Bool
}

/// A part of a body that has left.
struct SentBytes: Mergeable {
  var from: Int64
  var to: Int64

  /// Not one of a body that has begun again.
  mutating func merge(_ next: SentBytes) -> Bool {
    guard next.from == to else { return false }
    to = next.to
    return true
  }
}

/// A part of a response's content.
struct ReceivedBytes: Mergeable {
  /// Empty if it is in a file.
  var data: Data
  var count: Int64
  /// How many bytes have come with it and before.
  var total: Int64

  mutating func merge(_ next: ReceivedBytes) -> Bool {
    data += next.data
    count += next.count
    total = next.total
    return true
  }
}
