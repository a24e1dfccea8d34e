import LarkspurTransport
import Testing

@Suite(.timeLimit(.minutes(2))) struct CrewTests {
  let loop: ClientLoop
  let crew: Crew

  init() throws {
    loop = try ClientLoop(name: "crew")
    crew = Crew(on: loop)
  }

  private final class Work: CrewWork {
    private let body: @Sendable () async -> Void
    init(_ body: @escaping @Sendable () async -> Void) { self.body = body }
    func run() async { await body() }
  }

  @Test func workIsDoneOnTheLoop() async {
    for _ in 0..<100 {
      let isCurrent = await withCheckedContinuation { continuation in
        crew.run(Work { [loop] in continuation.resume(returning: loop.isCurrent) })
      }
      #expect(isCurrent)
    }
    crew.dismiss()
  }

  /// More jobs than the maximum number of idle workers run at once: each one waits for all others.
  @Test func asManyAsThereIsWork() async {
    let all = 200
    let (events, source) = AsyncStream<Int>.makeStream()
    let gate = Gate()
    for number in 0..<all {
      crew.run(
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
    crew.dismiss()
  }

  /// Idle workers keep no reference to finished work.
  @Test func workIsLetGo() async {
    weak var last: Work?
    await withCheckedContinuation { continuation in
      let work = Work { continuation.resume() }
      last = work
      crew.run(work)
    }
    while last != nil { await Task.yield() }
    crew.dismiss()
  }

  @Test func theDismissedStillWork() async {
    crew.dismiss()
    for _ in 0..<3 {
      await withCheckedContinuation { continuation in
        crew.run(Work { continuation.resume() })
      }
    }
  }

  /// A crew without users is deallocated.
  @Test func theCrewIsLetGo() async throws {
    weak var gone: Crew?
    do {
      let crew = Crew(on: loop)
      gone = crew
      await withCheckedContinuation { continuation in
        crew.run(Work { continuation.resume() })
      }
      crew.dismiss()
    }
    while gone != nil { await Task.yield() }
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
