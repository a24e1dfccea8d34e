import LarkspurIO
import Synchronization

/// A few loops, each on a thread of its own, that sessions are spread over. Any thread may use it.
///
/// A pool lives on one loop: so a session's requests share its connections, and sessions on different loops share nothing
/// but the machine. A loop is started when it is first wanted, and then runs as long as the group is there.
public final class LoopGroup: Sendable {
  /// The default group: one loop for each processor that the process may use, and at most four.
  public static let shared = LoopGroup(count: min(ProcessorCount.available, 4))

  private struct State {
    var loops: [ClientLoop?]
    /// How many hold each of them.
    var holders: [Int]
  }

  private let state: Mutex<State>

  public init(count: Int) {
    let count = max(count, 1)
    state = Mutex(State(loops: Array(repeating: nil, count: count), holders: Array(repeating: 0, count: count)))
  }

  deinit {
    for loop in state.withLock({ $0.loops }) { loop?.stop() }
  }

  /// How many loops there are, started or not.
  public var count: Int { state.withLock { $0.loops.count } }

  /// The loop that the fewest hold. It is held until the returned value goes.
  public func take() throws(Errno) -> Held {
    let (index, loop) = try state.withLock { state throws(Errno) in
      var best = 0
      for index in state.holders.indices where state.holders[index] < state.holders[best] { best = index }
      let loop = if let loop = state.loops[best] { loop } else { try ClientLoop(name: "larkspur-loop-\(best)") }
      state.loops[best] = loop
      state.holders[best] += 1
      return (best, loop)
    }
    return Held(loop: loop, index: index, group: self)
  }

  private func release(_ index: Int) {
    state.withLock { $0.holders[index] -= 1 }
  }

  /// A lease of a group's loop.
  public final class Held: Sendable {
    public let loop: ClientLoop
    private let index: Int
    private let group: LoopGroup

    fileprivate init(loop: ClientLoop, index: Int, group: LoopGroup) {
      self.loop = loop
      self.index = index
      self.group = group
    }

    deinit {
      group.release(index)
    }
  }
}
