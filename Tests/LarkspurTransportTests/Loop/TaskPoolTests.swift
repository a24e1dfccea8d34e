import LarkspurTransport
import TestKit
import Testing

@Suite(.timeLimit(.minutes(2))) struct TaskPoolTests {
  let loop: ClientLoop
  let taskPool: TaskPool

  init() throws {
    loop = try ClientLoop(name: "taskPool")
    taskPool = TaskPool(on: loop)
  }

  private final class Work: TaskPoolWork {
    private let body: @Sendable () async -> Void
    init(_ body: @escaping @Sendable () async -> Void) { self.body = body }
    func run() async { await body() }
  }

  @Test func workIsDoneOnTheLoop() async {
    for _ in 0..<100 {
      let isCurrent = await withCheckedContinuation { continuation in
        taskPool.run(Work { [loop] in continuation.resume(returning: loop.isCurrent) })
      }
      #expect(isCurrent)
    }
    taskPool.shutDown()
  }

  /// More jobs than the maximum number of idle workers run at once: each one waits for all others.
  @Test func asManyAsThereIsWork() async {
    let all = 200
    let (events, source) = AsyncStream<Int>.makeStream()
    let gate = Gate()
    for number in 0..<all {
      taskPool.run(
        Work {
          source.yield(number)
          await gate.wait()
          source.yield(number)
        })
    }
    var iterator = events.makeAsyncIterator()
    var begun: Set<Int> = []
    while begun.count < all, let number = await iterator.next() { begun.insert(number) }
    await gate.open()
    var ended: Set<Int> = []
    while ended.count < all, let number = await iterator.next() { ended.insert(number) }
    #expect(ended.count == all)
    taskPool.shutDown()
  }

  /// Idle workers keep no reference to finished work.
  @Test func workIsLetGo() async {
    weak var last: Work?
    await withCheckedContinuation { continuation in
      let work = Work { continuation.resume() }
      last = work
      taskPool.run(work)
    }
    await Wait.until("the work is released") { last == nil }
    taskPool.shutDown()
  }

  @Test func theDismissedStillWork() async {
    taskPool.shutDown()
    for _ in 0..<3 {
      await withCheckedContinuation { continuation in
        taskPool.run(Work { continuation.resume() })
      }
    }
  }

  /// A taskPool without users is deallocated.
  @Test func theCrewIsLetGo() async throws {
    weak var gone: TaskPool?
    do {
      let taskPool = TaskPool(on: loop)
      gone = taskPool
      await withCheckedContinuation { continuation in
        taskPool.run(Work { continuation.resume() })
      }
      taskPool.shutDown()
    }
    await Wait.until("the pool is released") { gone == nil }
  }

  private actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func wait() async {
      if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }

    func open() {
      isOpen = true
      for continuation in waiting { continuation.resume() }
      waiting = []
    }
  }
}
