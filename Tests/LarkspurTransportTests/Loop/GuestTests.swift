import LarkspurBytes
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Turns that are taken on the threads of those who bring work, while the loop's own sleeps.
@Suite struct GuestTests {
  let loop: ClientLoop

  init() throws { loop = try ClientLoop(name: "guests") }

  /// Until the loop is found asleep: that cannot be waited for.
  @Test(.timeLimit(.minutes(2))) func workBeginsAtOnce() async {
    while true {
      let thread = SystemThread.currentIdentity
      let (isSame, isCurrent) = await loop.run { [loop] in (SystemThread.currentIdentity == thread, loop.isCurrent) }
      #expect(isCurrent)
      if isSame { break }
    }
    #expect(!loop.isCurrent)
    loop.stop()
  }

  /// The loop had meant to sleep for longer.
  @Test(.timeLimit(.minutes(2))) func whatAGuestWaitsForComes() async {
    for _ in 0..<100 {
      await loop.run { [loop] in
        let deadline = loop.now.advanced(by: .microseconds(100))
        await Waiter.suspend { waiter in _ = loop.startTimer(deadline) { waiter.wake() } }
        #expect(loop.kernel.now() >= deadline)
      }
    }
    let slots = await loop.run { [loop] in loop.slotsInUse }
    // The timers that have fired are not stopped by anybody.
    #expect(slots == 100)
    loop.stop()
  }

  /// One thread at a time has the loop, whoever it is.
  @Test(.timeLimit(.minutes(5))) func turnsAreTakenOneAtATime() async {
    let count = Count()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { [loop] in
          for _ in 0..<500 {
            await loop.run {
              let before = count.value
              count.value = before + 1
              await Task.yield()
              count.value += 1
            }
          }
        }
      }
    }
    #expect(count.value == 8_000)
    loop.stop()
  }

  /// What a turn brings goes on when the turn is over: whoever is woken finds the loop free.
  @Test(.timeLimit(.minutes(2))) func successorsFindTheLoopFree() async {
    for _ in 0..<100 {
      await withCheckedContinuation { continuation in
        let successor = Successor { [loop] in
          #expect(!loop.isCurrent)
          continuation.resume()
        }
        loop.post { [loop] in loop.callAfterTurn(successor) }
      }
    }
    loop.stop()
  }

  /// Belongs to whoever has the loop.
  private final class Count: @unchecked Sendable { var value = 0 }

  private final class Successor: TurnSuccessor, Sendable {
    private let call: @Sendable () -> Void
    init(_ call: @escaping @Sendable () -> Void) { self.call = call }
    func turnIsOver() { call() }
  }
}
