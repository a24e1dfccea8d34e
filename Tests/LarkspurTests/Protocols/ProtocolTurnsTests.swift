import Foundation
import Synchronization
import Testing

@testable import Larkspur

/// Tests the order in which programs' protocols start.
@Suite(.timeLimit(.minutes(2))) struct ProtocolTurnsTests {
  /// The order of starts that have been called.
  private final class Starts: Sendable {
    private let list = Mutex<[Int]>([])

    var all: [Int] { list.withLock { $0 } }

    func add(_ turn: Int) { list.withLock { $0.append(turn) } }
  }

  private let turns = ProtocolTurns(patience: .never)
  private let starts = Starts()

  private func start(_ turn: Int) { turns.start(turn) { [starts] in starts.add(turn) } }

  @Test func aStartWaitsForEarlierTurns() {
    for turn in 0..<4 { #expect(turns.take() == turn) }
    start(2)
    start(1)
    #expect(starts.all == [])
    start(0)
    #expect(starts.all == [0])
    turns.end(0)
    #expect(starts.all == [0, 1])
    turns.end(1)
    turns.end(2)
    start(3)
    #expect(starts.all == [0, 1, 2, 3])
  }

  @Test func aTurnMayEndWithoutAStart() {
    for _ in 0..<4 { _ = turns.take() }
    start(1)
    start(3)
    turns.end(2)
    turns.end(0)
    #expect(starts.all == [1])
    turns.end(1)
    turns.end(1)
    #expect(starts.all == [1, 3])
  }

  /// A suspended task ends its turn, and starts its protocol later.
  @Test func aStartAfterTheEndOfItsTurn() {
    for _ in 0..<3 { _ = turns.take() }
    turns.end(1)
    start(1)
    #expect(starts.all == [1])
    start(2)
    turns.end(1)
    turns.end(0)
    #expect(starts.all == [1, 2])
  }

  /// A start that waits is dropped with its turn, for example when its task is cancelled.
  @Test func theEndDropsAStart() {
    for _ in 0..<3 { _ = turns.take() }
    start(1)
    start(2)
    turns.end(1)
    turns.end(0)
    #expect(starts.all == [2])
  }

  @Test func theEndOfAll() {
    for _ in 0..<5 { _ = turns.take() }
    for turn in [3, 1, 4] { start(turn) }
    turns.endAll()
    #expect(starts.all == [1, 3, 4])
    // The turns that are left have no effect, and later ones wait for each other again.
    turns.end(0)
    start(2)
    let (fifth, sixth) = (turns.take(), turns.take())
    start(sixth)
    #expect(starts.all == [1, 3, 4, 2])
    turns.end(fifth)
    #expect(starts.all == [1, 3, 4, 2, sixth])
  }

  /// A turn that lasts ends all.
  @Test func patienceEnds() async {
    let turns = ProtocolTurns(patience: .milliseconds(1))
    let (_, second) = (turns.take(), turns.take())
    await withCheckedContinuation { continuation in turns.start(second) { continuation.resume() } }
    #expect(turns.take() == 2)
  }

  // MARK: - Sessions

  /// Protocols start in the order in which the tasks were resumed, whichever classes take their requests first.
  @Test func protocolsStartInTheOrderOfTheTasks() async throws {
    let paths = Starts()
    let script = try ScriptedProtocol.script { one in
      paths.add(Int(one.request.url?.lastPathComponent ?? "") ?? -1)
      one.respond()
      one.finish()
    }
    let session = script.session()
    defer { session.invalidateAndCancel() }
    session.core.protocolTurns = ProtocolTurns(patience: .never)
    let tasks = (0..<200).map { session.dataTask(with: script.url.appending(path: "\($0)")) }
    for task in tasks { task.resume() }
    await script.wait(for: "stop", count: tasks.count)
    #expect(paths.all == Array(0..<200))
  }

  /// Cancelled and suspended tasks delay no others.
  @Test func endedTasksDelayNoOthers() async throws {
    let script = try ScriptedProtocol.script { one in
      one.respond()
      one.finish()
    }
    let session = script.session()
    defer { session.invalidateAndCancel() }
    session.core.protocolTurns = ProtocolTurns(patience: .never)
    let tasks = (0..<60).map { session.dataTask(with: script.url.appending(path: "\($0)")) }
    for (index, task) in tasks.enumerated() {
      task.resume()
      if index % 3 == 0 { task.cancel() }
      if index % 3 == 1 { task.suspend() }
    }
    await script.wait(for: "stop", count: 20)
    for task in tasks where task.state == .suspended { task.resume() }
    await script.wait(for: "stop", count: 40)
  }
}
