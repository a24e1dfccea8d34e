import LarkspurBytes
import LarkspurIO
import LarkspurTestSupport
import Synchronization
import Testing

@testable import LarkspurTransport

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

  /// Who has brought a job may still be in the midst of it when all that held the loop has gone on and let go.
  @Test(.timeLimit(.minutes(5))) func aLoopMayGoBeforeItsGuest() async throws {
    loop.stop()
    for _ in 0..<10_000 {
      let loop = try ClientLoop(name: "short-lived")
      await loop.run {}
      loop.stop()
    }
  }

  @Test(.timeLimit(.minutes(2)), arguments: [true, false]) func workIsDoneByWhoeverHasTheLoop(asGuest: Bool) async {
    for _ in 0..<100 {
      let isCurrent = await withCheckedContinuation { continuation in
        loop.perform(GuestWork { [loop] in continuation.resume(returning: loop.isCurrent) }, asGuest: asGuest)
      }
      #expect(isCurrent)
    }
    loop.stop()
  }

  /// Whoever has the loop is in the midst of something, and what work brings comes behind it.
  @Test(.timeLimit(.minutes(2))) func workWaitsForItsTurn() async {
    let order = await withCheckedContinuation { continuation in
      let order = Order()
      let last = GuestWork {
        order.steps.append("last")
        continuation.resume(returning: order.steps)
      }
      let inner = GuestWork { [loop] in
        loop.perform(last, asGuest: true)
        order.steps.append("inner")
      }
      let outer = GuestWork { [loop] in
        loop.perform(inner, asGuest: true)
        order.steps.append("outer")
      }
      loop.perform(outer, asGuest: false)
    }
    #expect(order == ["outer", "inner", "last"])
    loop.stop()
  }

  /// Whoever opens sockets does it on the loop's own thread: it may have a network namespace of its own.
  @Test(.timeLimit(.minutes(2))) func guestsOpenNoSockets() async {
    let own = await withCheckedContinuation { continuation in
      loop.post { continuation.resume(returning: SystemThread.currentIdentity) }
    }
    for _ in 0..<100 {
      let thread = await withCheckedContinuation { continuation in
        let work = GuestWork { [loop] in
          Task(executorPreference: loop) { @concurrent in
            await loop.leaveGuest()
            continuation.resume(returning: SystemThread.currentIdentity)
          }
        }
        loop.perform(work, asGuest: true)
      }
      #expect(thread == own)
    }
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

  /// Successors are called in their order, on the thread that took the turn.
  @Test(.timeLimit(.minutes(2))) func successorsKeepTheirOrder() async {
    typealias Call = (name: Int, thread: UInt64)
    let (calls, told) = AsyncStream.makeStream(of: Call.self)
    let own: UInt64 = await withCheckedContinuation { continuation in
      loop.post { [loop] in
        for name in 0..<6 {
          loop.callAfterTurn(Successor { told.yield((name, SystemThread.currentIdentity)) })
        }
        continuation.resume(returning: SystemThread.currentIdentity)
      }
    }
    var order: [Call] = []
    for await call in calls.prefix(6) { order.append(call) }
    #expect(order.map(\.name) == Array(0..<6))
    #expect(order.allSatisfy { $0.thread == own })
    loop.stop()
  }

  /// What a guest's turn brings comes, whether the guest's thread brings it or the loop's.
  @Test(.timeLimit(.minutes(5)), arguments: [0, 50, 1_000], [1, 3])
  func whatAGuestAsksForComes(microseconds: Int, guests: Int) async {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<guests {
        group.addTask { [loop] in
          for _ in 0..<300 {
            await withCheckedContinuation { continuation in
              let successor = Successor { continuation.resume() }
              let work = GuestWork {
                guard microseconds > 0 else { return loop.callAfterTurn(successor) }
                _ = loop.startTimer(loop.now.advanced(by: .microseconds(microseconds))) {
                  loop.callAfterTurn(successor)
                }
              }
              loop.perform(work, asGuest: true)
            }
          }
        }
      }
    }
    loop.stop()
  }

  /// Belongs to whoever has the loop.
  private final class Order: @unchecked Sendable { var steps: [String] = [] }

  /// Belongs to whoever has the loop.
  private final class Count: @unchecked Sendable { var value = 0 }
}
