import LarkspurIO
import Synchronization

/// A small group of loops, each on its own thread, over which sessions are spread. Any thread may use it.
///
/// A pool lives on one loop, so the requests of a session share its connections. Sessions on different loops share no
/// connections. A loop starts on first use and runs until the group is released.
public final class LoopGroup: Sendable {
  /// The default group: one loop for each processor that the process may use, and at most four.
  public static let shared = LoopGroup(count: min(ProcessorCount.available, 4))

  private struct State {
    var loops: [ClientLoop?]
    /// The number of leases of each loop.
    var leaseCounts: [Int]
  }

  private let state: Mutex<State>

  public init(count: Int) {
    let count = max(count, 1)
    state = Mutex(State(loops: Array(repeating: nil, count: count), leaseCounts: Array(repeating: 0, count: count)))
  }

  deinit {
    for loop in state.withLock({ $0.loops }) { loop?.stop() }
  }

  /// The number of loops, started or not.
  public var count: Int { state.withLock { $0.loops.count } }

  /// Leases the loop that has the fewest leases.
  ///
  /// - Returns: The lease. The loop counts as used until the lease is released.
  /// - Throws: The error of a loop that could not be started.
  public func lease() throws(Errno) -> Lease {
    let (index, loop) = try state.withLock { state throws(Errno) in
      var best = 0
      for index in state.leaseCounts.indices where state.leaseCounts[index] < state.leaseCounts[best] { best = index }
      let loop = if let loop = state.loops[best] { loop } else { try ClientLoop(name: "larkspur-loop-\(best)") }
      state.loops[best] = loop
      state.leaseCounts[best] += 1
      return (best, loop)
    }
    return Lease(loop: loop, index: index, group: self)
  }

  private func release(_ index: Int) {
    state.withLock { $0.leaseCounts[index] -= 1 }
  }

  /// A lease of a group's loop.
  public final class Lease: Sendable {
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
