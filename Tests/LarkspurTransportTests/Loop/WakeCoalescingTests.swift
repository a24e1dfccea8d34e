import LarkspurIO
import LarkspurTestSupport
import Synchronization
import Testing

@testable import LarkspurTransport

/// Callers that wait for others, to be woken with them.
@Suite(.timeLimit(.minutes(2))) struct WakeCoalescingTests {
  let kernel = ScriptedKernel()
  let loop: ClientLoop
  private let calls = Calls()

  init() throws {
    loop = try ClientLoop(withoutThreadOn: kernel)
    loop.countRequests(WakeCoalescing.requestsMin)
  }

  /// Who has been called, and how often the loop had paused by then.
  private final class Calls: Sendable {
    struct Call: Equatable {
      var name: Int
      var pauses: Int
    }
    let list = Mutex<[Call]>([])
    private let (ends, end) = AsyncStream.makeStream(of: Void.self)

    func add(_ name: Int, _ kernel: ScriptedKernel) {
      list.withLock { $0.append(Call(name: name, pauses: kernel.counts.pauses)) }
      end.yield()
    }

    /// Waits for so many.
    func first(_ count: Int) async -> [Call] {
      for await _ in ends.prefix(count) {}
      return list.withLock { $0 }
    }
  }

  /// Results that come in the loop's next turn.
  private func post(_ names: Range<Int>, areCallers: Bool = true, to loop: ClientLoop? = nil) {
    let loop = loop ?? self.loop
    loop.post { [calls, kernel] in
      for name in names {
        let priority = areCallers ? TaskPriority.medium.rawValue : nil
        loop.callAfterTurn(Successor(callersPriority: priority) { calls.add(name, kernel) })
      }
    }
  }

  private var callCount: Int { calls.list.withLock { $0.count } }

  @Test func whoeverComesInAPauseIsCalledWithThem() async {
    kernel.inPauses { [kernel] in if kernel.counts.pauses == 1 { post(1..<5) } }
    post(0..<1)
    loop.takeTurn()
    #expect(kernel.counts.pauses == 1 && callCount == 0)
    // It goes on while it is worth it.
    loop.takeTurn()
    #expect(kernel.counts.pauses == 2)
    #expect(await calls.first(5) == (0..<5).map { Calls.Call(name: $0, pauses: 2) })
  }

  @Test func thePausesEndWithEnough() async {
    kernel.inPauses { [kernel] in
      let count = kernel.counts.pauses
      post(4 * count - 3..<4 * count + 1)
    }
    post(0..<1)
    for _ in 0..<3 { loop.takeTurn() }
    #expect(await calls.first(9) == (0..<9).map { Calls.Call(name: $0, pauses: 2) })
  }

  /// What comes is no result: those who are there wait no longer.
  @Test func aPauseInVain() async {
    kernel.inPauses { [loop] in loop.post {} }
    post(0..<1)
    loop.takeTurn()
    #expect(callCount == 0)
    loop.takeTurn()
    #expect(await calls.first(1) == [Calls.Call(name: 0, pauses: 1)])
  }

  /// A loop that gets something else to do calls those who have come, and the pause counts as what it was.
  @Test func workEndsAPause() async {
    kernel.inPauses { [kernel, loop] in
      guard kernel.counts.pauses == 1 else { return }
      post(1..<5)
      loop.post { loop.post {} }
    }
    post(0..<1)
    for _ in 0..<2 { loop.takeTurn() }
    #expect(await calls.first(5) == (0..<5).map { Calls.Call(name: $0, pauses: 1) })
    post(5..<6)
    loop.takeTurn()
    #expect(kernel.counts.pauses == 2)
  }

  /// After each pause in vain there is none for a while.
  @Test func afterAPauseInVainThereIsNone() {
    var pauses: [Int] = []
    for name in 0..<8 {
      post(name..<name + 1)
      loop.takeTurn()
      #expect(callCount == name + 1)
      pauses.append(kernel.counts.pauses)
    }
    #expect(pauses == [1, 1, 2, 2, 2, 2, 3, 3])
  }

  @Test func fewRequestsDoNotWait() {
    loop.countRequests(-1)
    post(0..<1)
    loop.takeTurn()
    #expect(calls.list.withLock { $0 } == [Calls.Call(name: 0, pauses: 0)])
  }

  /// Nor does anybody with whom somebody else is called.
  @Test func othersDoNotWait() {
    post(0..<1)
    post(1..<2, areCallers: false)
    loop.takeTurn()
    #expect(calls.list.withLock { $0.map(\.name) }.sorted() == [0, 1] && kernel.counts.pauses == 0)
  }

  /// Nor while there is more to do.
  @Test func aLoopThatHasWorkDoesNotPause() {
    loop.post { [loop] in loop.post {} }
    post(0..<1)
    loop.takeTurn()
    #expect(callCount == 1 && kernel.counts.pauses == 0)
  }

  @Test func aLoopThatExpectsAnAnswerDoesNotPause() {
    // A caller on the loop looks for the one answer that it waits for.
    post(0..<1)
    loop.post { [loop] in loop.own.state.expectsAnswer = true }
    loop.takeTurn()
    #expect(callCount == 1 && kernel.counts.pauses == 0)
  }

  /// A loop with a thread, which finds that so many requests are on their way, and stops in its first pause.
  private func stop(inPause hook: @escaping @Sendable (ClientLoop) -> Void) async throws {
    let loop = try ClientLoop(name: "coalescing", on: kernel)
    kernel.inPauses {
      hook(loop)
      loop.stop()
    }
    loop.post { loop.countRequests(WakeCoalescing.requestsMin) }
    post(0..<1, to: loop)
  }

  @Test func whoeverIsLeftWhenTheLoopStopsIsCalled() async throws {
    try await stop { loop in post(1..<5, to: loop) }
    #expect(await calls.first(5) == (0..<5).map { Calls.Call(name: $0, pauses: 1) })
  }

  /// To others the loop sleeps in a pause: a guest has a turn of its own, and does not call those who wait.
  @Test func aGuestHasATurnInAPause() async throws {
    try await stop { [calls, kernel] loop in
      let guest = try? SystemThread(name: "guest") {
        let work = GuestWork { loop.callAfterTurn(Successor { calls.add(100, kernel) }) }
        loop.perform(work, asGuest: true)
      }
      guest?.join()
      #expect(calls.list.withLock { $0.map(\.name) } == [100])
    }
    #expect(await calls.first(2).map(\.name) == [100, 0])
  }

  @Test func pausesThatBringLittleBecomeRare() {
    func skipped(bringing count: Int, _ coalescing: inout WakeCoalescing) -> Int {
      var skips = 0
      while !coalescing.pauses(before: 1) { skips += 1 }
      coalescing.endPause(with: 1 + count)
      return skips
    }
    var coalescing = WakeCoalescing()
    #expect((0..<3).map { _ in skipped(bringing: WakeCoalescing.broughtMin, &coalescing) } == [0, 0, 0])
    let most = (0..<12).map { _ in skipped(bringing: WakeCoalescing.broughtMin - 1, &coalescing) }
    #expect(most == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023, 1_023])
    #expect((0..<2).map { _ in skipped(bringing: WakeCoalescing.broughtMin, &coalescing) } == [1_023, 0])
    #expect((0..<2).map { _ in skipped(bringing: 0, &coalescing) } == [0, 511])
  }
}
