import LarkspurBytes
import LarkspurHTTP

/// The requests that are queued on a connection behind the one that is being answered, in their order.
struct Pipeline {
  struct Follower {
    let number: UInt64
    let context: RequestContext
    let deadline: Deadline
    let headBytes: Int
    let bodyBytes: Int
    /// The task that waits for its turn, if there is one.
    var continuation: TaskContinuation?
    var isAbandoned = false

    var byteCount: Int { headBytes + bodyBytes }
  }

  /// Whether the owner of the current exchange still uses the connection, even if the response is complete. The next
  /// exchange has to wait.
  var isBusy = false
  private var followers: [Follower] = []
  /// The size of all queued requests.
  private(set) var byteCount = 0

  /// The size of all queued requests but the first one.
  var byteCountBehindFirst: Int { byteCount - (followers.first?.byteCount ?? 0) }

  var isEmpty: Bool { followers.isEmpty }
  var count: Int { followers.count }

  mutating func append(_ follower: Follower) {
    followers.append(follower)
    byteCount += follower.byteCount
  }

  mutating func takeFirst() -> Follower? {
    guard let follower = followers.first else { return nil }
    byteCount -= follower.byteCount
    // Performance: a pipeline is only a few requests deep, so moving the rest is cheap.
    followers.removeFirst()
    return follower
  }

  mutating func keep(_ continuation: TaskContinuation, of number: UInt64) {
    guard let index = index(of: number) else { return }
    followers[index].continuation = continuation
  }

  /// Marks a request as unwanted.
  ///
  /// - Returns: The task that waits for its turn, which the caller has to resume, or `nil`.
  mutating func abandon(_ number: UInt64) -> TaskContinuation? {
    guard let index = index(of: number) else { return nil }
    followers[index].isAbandoned = true
    let continuation = followers[index].continuation
    followers[index].continuation = nil
    return continuation
  }

  /// The index of a request. The numbers are consecutive.
  private func index(of number: UInt64) -> Int? {
    guard let first = followers.first, number >= first.number, number - first.number < followers.count else {
      return nil
    }
    return Int(number - first.number)
  }
}
