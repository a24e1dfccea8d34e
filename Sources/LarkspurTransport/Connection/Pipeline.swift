import LarkspurBytes
import LarkspurHTTP

/// The requests that have been put on a connection behind the one that is being answered, in their order.
struct Pipeline {
  struct Follower {
    let number: UInt64
    let context: RequestContext
    let deadline: Deadline
    let headBytes: Int
    let bodyBytes: Int
    /// The task, if it waits for its turn.
    var waiter: Waiter?
    var isAbandoned = false

    var byteCount: Int { headBytes + bodyBytes }
  }

  /// Whether the task of the present exchange still uses the connection, even if its response is complete. The next request
  /// has to wait.
  var isBusy = false
  private var followers: [Follower] = []
  /// The size of all these requests.
  private(set) var byteCount = 0

  var isEmpty: Bool { followers.isEmpty }
  var count: Int { followers.count }

  mutating func append(_ follower: Follower) {
    followers.append(follower)
    byteCount += follower.byteCount
  }

  mutating func takeFirst() -> Follower? {
    guard let follower = followers.first else { return nil }
    byteCount -= follower.byteCount
    // A pipeline is a few requests deep.
    followers.removeFirst()
    return follower
  }

  mutating func keep(_ waiter: Waiter, of number: UInt64) {
    guard let index = index(of: number) else { return }
    followers[index].waiter = waiter
  }

  /// Returns the one who waits.
  mutating func abandon(_ number: UInt64) -> Waiter? {
    guard let index = index(of: number) else { return nil }
    followers[index].isAbandoned = true
    let waiter = followers[index].waiter
    followers[index].waiter = nil
    return waiter
  }

  /// They are numbered one after another.
  private func index(of number: UInt64) -> Int? {
    guard let first = followers.first, number >= first.number, number - first.number < followers.count else {
      return nil
    }
    return Int(number - first.number)
  }
}
