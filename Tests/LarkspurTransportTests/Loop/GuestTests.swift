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

  /// Those who wake callers go together, and not on the loop's thread; all others keep their order there.
  @Test(.timeLimit(.minutes(2))) func callersAreWokenTogether() async {
    typealias Call = (name: Int, thread: UInt64)
    let (calls, told) = AsyncStream.makeStream(of: Call.self)
    let own: UInt64 = await withCheckedContinuation { continuation in
      loop.post { [loop] in
        for name in 0..<6 {
          let priority = name % 2 == 0 ? TaskPriority.medium.rawValue : nil
          let successor = Successor(callersPriority: priority) { told.yield((name, SystemThread.currentIdentity)) }
          loop.callAfterTurn(successor)
        }
        continuation.resume(returning: SystemThread.currentIdentity)
      }
    }
    var order: [Call] = []
    for await call in calls.prefix(6) { order.append(call) }
    let (callers, others) = (order.filter { $0.name % 2 == 0 }, order.filter { $0.name % 2 == 1 })
    #expect(callers.map(\.name) == [0, 2, 4] && others.map(\.name) == [1, 3, 5])
    #expect(Set(callers.map(\.thread)).count == 1 && callers[0].thread != own)
    #expect(others.allSatisfy { $0.thread == own })
    loop.stop()
  }

  /// Whether the loop's thread brings it, or the guest's own, before the guest waits, while it does, or after: it comes.
  @Test(.timeLimit(.minutes(5)), arguments: [0, 50, 1_000], [1, 3])
  func whatAGuestWaitsForHereComes(microseconds: Int, guests: Int) async {
    await wait(on: loop, microseconds: microseconds, guests: guests)
    loop.stop()
  }

  /// So it does if guests look for it while the loop's thread sleeps at its bell.
  @Test(.timeLimit(.minutes(5)), arguments: [0, 50, 1_000], [1, 3])
  func whatAGuestLooksForComes(microseconds: Int, guests: Int) async throws {
    loop.stop()
    let loop = try ClientLoop(name: "looking", choice: .always)
    await wait(on: loop, microseconds: microseconds, guests: guests)
    loop.stop()
  }

  private func wait(on loop: ClientLoop, microseconds: Int, guests: Int) async {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<guests {
        group.addTask {
          for _ in 0..<300 {
            let awaited = AwaitedAnswer()
            await Waiter.suspend { waiter in
              awaited.waiter = waiter
              let work = GuestWork {
                guard microseconds > 0 else { return loop.callAfterTurn(awaited) }
                _ = loop.startTimer(loop.now.advanced(by: .microseconds(microseconds))) {
                  loop.callAfterTurn(awaited)
                }
              }
              loop.perform(work, asGuest: true, for: awaited)
            }
            #expect(awaited.hasCome)
          }
        }
      }
    }
  }

  /// Who waits for what does not come goes after a while, though nothing happens at the poller.
  @Test(.timeLimit(.minutes(2))) func guestsDoNotWaitForEver() async {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask { [loop] in
          for _ in 0..<300 {
            let awaited = AwaitedAnswer()
            loop.perform(GuestWork {}, asGuest: true, for: awaited)
            #expect(!awaited.hasCome)
          }
        }
      }
    }
    loop.stop()
  }

  /// What is waited for in vain is not waited for the next time, and not for twice as many times after each that follows.
  @Test func guestsWaitWhereItIsWorthIt() throws {
    let waits = GuestWaits(try Poller(kernel: LinuxKernel.shared).guest)
    func skipped(_ wasWorthIt: Bool?) -> Int {
      var (count, hasWaited) = (-1, false)
      while !hasWaited {
        count += 1
        waits.wait { _ in
          hasWaited = true
          return wasWorthIt
        }
      }
      return count
    }
    #expect((0..<12).map { _ in skipped(false) } == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023, 1_023])
    #expect([skipped(nil), skipped(nil), skipped(true), skipped(true)] == [1_023, 0, 0, 0])
    #expect([skipped(false), skipped(false)] == [0, 511])
  }

  /// Where the program's other tasks keep it from going on, none waits.
  @Test func guestsMakeRoom() throws {
    let waits = GuestWaits(try Poller(kernel: LinuxKernel.shared).guest)
    func asks() -> Bool {
      var isAsked = false
      waits.wait { _ in
        isAsked = true
        return true
      }
      return isAsked
    }
    #expect((0..<32).allSatisfy { _ in asks() })
    waits.learn(wasWorthIt: false)
    #expect([asks(), asks()] == [false, true])
  }

  @Test func oneGuestWaitsAtATime() throws {
    let waits = GuestWaits(try Poller(kernel: LinuxKernel.shared).guest)
    var (outer, inner) = (0, 0)
    waits.wait { _ in
      outer += 1
      waits.wait { _ in
        inner += 1
        return true
      }
      return true
    }
    #expect(outer == 1 && inner == 0)
  }

  /// Belongs to whoever has the loop.
  private final class Order: @unchecked Sendable { var steps: [String] = [] }

  /// Belongs to whoever has the loop.
  private final class Count: @unchecked Sendable { var value = 0 }
}
