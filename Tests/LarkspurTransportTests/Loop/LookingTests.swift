import Testing

@testable import LarkspurTransport

/// Guests that look for their answers while the loop's thread sleeps at its bell.
@Suite(.timeLimit(.minutes(5))) struct LookingTests {
  let loop: ClientLoop

  init() throws { loop = try ClientLoop(name: "looking", choice: .always) }

  /// Each brings its echo, and takes what the others wait for as it comes.
  @Test(arguments: [1, 3]) func whatGuestsLookForComes(guests: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<guests {
        group.addTask {
          let line = try await EchoLine(on: loop)
          for _ in 0..<2_000 { await line.exchange() }
          line.hangUp()
        }
      }
      try await group.waitForAll()
    }
    loop.stop()
  }

  /// What comes by mail, what is due, and what a socket brings that no guest looks for.
  @Test func theLoopMissesNothingAtItsBell() async throws {
    let (line, other) = (try await EchoLine(on: loop), try await EchoLine(on: loop))
    for _ in 0..<20 {
      await untilTheLoopSleepsAtItsBell(line)
      await withCheckedContinuation { continuation in loop.post { continuation.resume() } }

      await untilTheLoopSleepsAtItsBell(line)
      await withCheckedContinuation { continuation in
        let timer = GuestWork { [loop] in
          _ = loop.startTimer(loop.now.advanced(by: .microseconds(300))) { continuation.resume() }
        }
        loop.perform(timer, asGuest: true)
      }

      await untilTheLoopSleepsAtItsBell(line)
      await other.exchange(asGuest: false)
    }
    line.hangUp()
    other.hangUp()
    loop.stop()
  }

  /// Nobody brings anything: the loop looks for itself.
  @Test func theLoopLooksForItself() async throws {
    let (line, other) = (try await EchoLine(on: loop), try await EchoLine(on: loop))
    let answer = await other.unasked()
    await untilTheLoopSleepsAtItsBell(line)
    try other.sendFromTheFarEnd()
    while !answer.hasCome { await Task.yield() }
    line.hangUp()
    other.hangUp()
    loop.stop()
  }

  @Test func itStopsAtItsBell() async throws {
    weak var thread: ClientLoop?
    do {
      let loop = try ClientLoop(name: "stopping", choice: .always)
      let line = try await EchoLine(on: loop)
      await untilTheLoopSleepsAtItsBell(line, on: loop)
      loop.stop()
      line.hangUp()
      thread = loop
    }
    while thread != nil { await Task.yield() }
    loop.stop()
  }

  private func untilTheLoopSleepsAtItsBell(_ line: EchoLine, on other: ClientLoop? = nil) async {
    repeat { await line.exchange() } while !(other ?? loop).bell.isInUse
  }
}
