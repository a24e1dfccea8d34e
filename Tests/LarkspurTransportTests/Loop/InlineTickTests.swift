import LarkspurBytes
import LarkspurIO
import LarkspurTestSupport
import Synchronization
import Testing

@testable import LarkspurTransport

/// Ticks on submitting threads, while the loop's own thread is parked.
@Suite struct InlineTickTests {
  let loop: ClientLoop

  init() throws { loop = try ClientLoop(name: "inline") }

  /// Work runs on the submitting thread if the loop is parked. The test repeats until it finds the loop parked,
  /// because that state cannot be waited for.
  @Test(.timeLimit(.minutes(2))) func aJobBeginsAtOnce() async {
    while true {
      let thread = SystemThread.currentIdentity
      let (isSame, isCurrent) = await loop.run { [loop] in (SystemThread.currentIdentity == thread, loop.isCurrent) }
      #expect(isCurrent)
      if isSame { break }
    }
    #expect(!loop.isCurrent)
    loop.stop()
  }

  /// A deadline that an inline tick sets takes effect, even if it is sooner than the one with which the loop parked.
  @Test(.timeLimit(.minutes(2))) func aSoonerDeadlineIsKept() async {
    for _ in 0..<100 {
      await loop.run { [loop] in
        let deadline = loop.now.advanced(by: .microseconds(100))
        await TaskContinuation.suspend { continuation in _ = loop.startTimer(deadline) { continuation.resume() } }
        #expect(loop.kernel.now() >= deadline)
      }
    }
    let slots = await loop.run { [loop] in loop.slotsInUse }
    // A timer that has fired keeps its slot until it is stopped.
    #expect(slots == 100)
    loop.stop()
  }

  /// A loop that finds items when it parks is not parked: an inline tick would run a later call of a thread before the
  /// items, which may be its earlier calls.
  @Test func aLoopWithItemsIsNotParked() throws {
    let loop = try ClientLoop(withoutThreadOn: ScriptedKernel())
    // Whether the loop may wait, and whether others take it for parked.
    func park() -> [Bool] { [loop.inbox.park(), loop.inbox.isParked] }
    #expect(park() == [true, true])
    loop.inbox.add { $0.calls.append {} }
    #expect(park() == [false, false])
    let calls = loop.inbox.drain()?.calls.count
    #expect(calls == 1)
    #expect(park() == [true, true])
  }

  /// Only one thread at a time runs a tick.
  @Test(.timeLimit(.minutes(5))) func ticksRunOneAtATime() async {
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

  /// The last reference to a loop may be released while the thread of an inline tick is still returning.
  @Test(.timeLimit(.minutes(5))) func aLoopMayGoBeforeItsInlineTickReturns() async throws {
    loop.stop()
    for _ in 0..<10_000 {
      let loop = try ClientLoop(name: "short-lived")
      await loop.run {}
      loop.stop()
    }
  }

  @Test(.timeLimit(.minutes(2)), arguments: [true, false]) func callbacksRunInATick(inline: Bool) async {
    for _ in 0..<100 {
      let isCurrent = await withCheckedContinuation { continuation in
        loop.submit(SubmittedCallback { [loop] in continuation.resume(returning: loop.isCurrent) }, inline: inline)
      }
      #expect(isCurrent)
    }
    loop.stop()
  }

  /// A callback that submits another one finishes before the other one runs.
  @Test(.timeLimit(.minutes(2))) func callbacksDoNotNest() async {
    let order = await withCheckedContinuation { continuation in
      let order = Order()
      let last = SubmittedCallback {
        order.steps.append("last")
        continuation.resume(returning: order.steps)
      }
      let inner = SubmittedCallback { [loop] in
        loop.submit(last, inline: true)
        order.steps.append("inner")
      }
      let outer = SubmittedCallback { [loop] in
        loop.submit(inner, inline: true)
        order.steps.append("outer")
      }
      loop.submit(outer, inline: false)
    }
    #expect(order == ["outer", "inner", "last"])
    loop.stop()
  }

  /// Sockets are opened on the loop's own thread, which may have a network namespace of its own.
  @Test(.timeLimit(.minutes(2))) func inlineTicksOpenNoSockets() async {
    let own = await withCheckedContinuation { continuation in
      loop.post { continuation.resume(returning: SystemThread.currentIdentity) }
    }
    for _ in 0..<100 {
      let thread = await withCheckedContinuation { continuation in
        let work = SubmittedCallback { [loop] in
          Task(executorPreference: loop) { @concurrent in
            await loop.leaveInlineTick()
            continuation.resume(returning: SystemThread.currentIdentity)
          }
        }
        loop.submit(work, inline: true)
      }
      #expect(thread == own)
    }
    loop.stop()
  }

  /// A completion runs after its tick, when the tick lock is free.
  @Test(.timeLimit(.minutes(2))) func completionsFindTheLoopFree() async {
    for _ in 0..<100 {
      await withCheckedContinuation { continuation in
        let completion = Completion { [loop] in
          #expect(!loop.isCurrent)
          continuation.resume()
        }
        loop.post { [loop] in loop.completeAfterTick(completion) }
      }
    }
    loop.stop()
  }

  /// Completions run in their order, on the thread that ran the tick.
  @Test(.timeLimit(.minutes(2))) func completionsKeepTheirOrder() async {
    typealias Call = (name: Int, thread: UInt64)
    let (calls, calling) = AsyncStream.makeStream(of: Call.self)
    let own: UInt64 = await withCheckedContinuation { continuation in
      loop.post { [loop] in
        for name in 0..<6 {
          loop.completeAfterTick(Completion { calling.yield((name, SystemThread.currentIdentity)) })
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

  /// The result of an inline tick arrives, in that tick or in a later one on the loop's thread.
  @Test(.timeLimit(.minutes(5)), arguments: [0, 50, 1_000], [1, 3])
  func inlineResultsCome(microseconds: Int, threads: Int) async {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<threads {
        group.addTask { [loop] in
          for _ in 0..<300 {
            await withCheckedContinuation { continuation in
              let completion = Completion { continuation.resume() }
              let work = SubmittedCallback {
                guard microseconds > 0 else { return loop.completeAfterTick(completion) }
                _ = loop.startTimer(loop.now.advanced(by: .microseconds(microseconds))) {
                  loop.completeAfterTick(completion)
                }
              }
              loop.submit(work, inline: true)
            }
          }
        }
      }
    }
    loop.stop()
  }

  /// Used only by the thread that runs a tick.
  private final class Order: @unchecked Sendable { var steps: [String] = [] }

  /// Used only by the thread that runs a tick.
  private final class Count: @unchecked Sendable { var value = 0 }
}
