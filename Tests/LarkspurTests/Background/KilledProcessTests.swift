import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Programs with background sessions, and the transfer service, are killed at random moments: at their start, in the
/// middle of a body, while a file moves to its place, and at the calls of the delegate.
///
/// The programs are started and killed until their tasks have ended, and this is repeated with new tasks.
/// `LARKSPUR_KILLS` is the number of kills of each test (20).
@Suite(.serialized, .timeLimit(.minutes(10))) struct KilledProcessTests {
  private static let size = 2_000_000
  private static let kills =
    ProcessInfo.processInfo.environment["LARKSPUR_KILLS"].flatMap { Int($0) } ?? 20

  private enum Victim: CaseIterable {
    case program, service, both
    /// All processes, and the directory for runtime files, which a start of the machine empties.
    case machine
  }

  @Test(.ownThread) func programsAreKilled() async throws {
    var generator = SeededGenerator(for: "programs of background sessions killed")
    var kills = 0
    while kills < Self.kills {
      kills += try await killUntilAllHasEnded(hasService: false, isSegmented: kills > 0, &generator)
    }
  }

  @Test(.ownThread) func programsAndTheServiceAreKilled() async throws {
    var generator = SeededGenerator(for: "programs and transfer services killed")
    var kills = 0
    while kills < Self.kills {
      kills += try await killUntilAllHasEnded(hasService: true, isSegmented: kills > 0, &generator)
    }
  }

  /// - Returns: The number of kills.
  private func killUntilAllHasEnded(
    hasService: Bool, isSegmented: Bool, _ generator: inout SeededGenerator
  ) async throws -> Int {
    let fixture = try BackgroundFixture()
    defer { fixture.stopService() }
    let environment = hasService ? try fixture.serviceEnvironment() : nil
    _ = try fixture.file("ends", "")
    _ = try fixture.file("history", "")
    for path in ["/a", "/b", "/c"] { fixture.serve(path, count: Self.size) }
    let received = Mutex(0)
    fixture.server.route("PUT", "/d") { request in
      received.withLock { $0 = request.body.count }
      return .text("thanks")
    }
    _ = try fixture.file("upload", String(repeating: "x", count: Self.size))
    let tasks =
      ["a", "b", "c"].map { (kind: "get", path: "/\($0)", name: "file-\($0)") }
      + [(kind: "put", path: "/d", name: "upload")]
    let names = Set(tasks.map(\.name))
    func hasEnded() throws -> Bool { try fixture.ends().count >= names.count }
    func wait(for program: SiblingProcess, lines: ClosedRange<Int>) async {
      let count = Int.random(in: lines, using: &generator)
      if count > 0 { _ = program.read(lines: count) }
      await Wait.moment(microseconds: Int.random(in: 0..<20_000, using: &generator))
    }

    var kills = 0
    while try kills < 50 && !hasEnded() {
      let program = try fixture.program(tasks, environment: environment, isSegmented: isSegmented)
      await wait(for: program, lines: 0...8)
      let victim = hasService ? Victim.allCases.randomElement(using: &generator) : .program
      if victim == .machine { program.kill() }
      if victim != .program, fixture.stopService() { kills += 1 }
      if victim == .machine {
        // The program may have started another service.
        await Wait.until("no program runs") { !fixture.killAll() }
        try? FileManager.default.removeItem(at: fixture.runtimeDirectory)
      }
      // The program connects with a new service.
      if victim == .service { await wait(for: program, lines: 0...4) }
      program.kill()
      kills += 1
    }
    _ = try fixture.program(tasks, environment: environment, isSegmented: isSegmented).text()
    for name in ["file-a", "file-b", "file-c"] {
      let content = try Data(contentsOf: fixture.folder.appending(path: name))
      #expect(content == Data(TestServer.content(count: Self.size)), "\(name)")
    }
    #expect(received.withLock { $0 } == Self.size)
    #expect(Set(try fixture.ends()) == Set(names.map { "\($0) 0" }))
    try checkThatAllIsToldOnce(fixture.history(), names)
    try await checkThatNothingIsLeft(fixture, environment)
    return kills
  }

  /// A program that is killed between a call of its delegate and the acknowledgement gets the call once more, unless it
  /// had moved the file. There are no other repetitions.
  private func checkThatAllIsToldOnce(_ history: [String], _ names: Set<String>) throws {
    for name in names {
      let (moved, ended, confirmed) = ("moved \(name)", "ended \(name)", "confirmed \(name)")
      #expect(history.count { $0 == moved } <= 1 && history.count { $0 == confirmed } <= 1, "\(history)")
      let last = try #require(history.lastIndex(of: ended))
      #expect(history.firstIndex(of: confirmed).map { last < $0 } != false, "\(history)")
      for process in history.split(separator: "begun") {
        #expect(process.count { $0 == ended } <= 1, "\(history)")
      }
    }
  }

  private func checkThatNothingIsLeft(_ fixture: BackgroundFixture, _ environment: [String: String]?) async throws {
    guard let environment else { return #expect(fixture.leftovers() == []) }
    // The service lets the session go behind the program's end.
    await Wait.until("the session is gone") { fixture.leftovers() == ["larkspur-transfers/socket"] }
    let all = { @Sendable in TransferServiceProcess.all(runtimeDirectory: fixture.folder.path) }
    await Wait.until("one service runs") { all().count == 1 }
    fixture.stopService()
    await Wait.until("no service runs") { all().isEmpty }
    // The next service finds nothing to do, and removes the socket of the killed one. The kernel may still be closing that
    // one's lock, and then the next one ends at once.
    try await Wait.until("a service ends well") {
      let next = Process()
      next.executableURL = try SiblingProcess.program("larkspur")
      next.arguments = ["transfers", "run", "--idle-time", "0.001"]
      next.environment = environment
      next.standardError = FileHandle.nullDevice
      try next.run()
      next.waitUntilExit()
      return next.terminationStatus == 0
    }
    #expect(fixture.leftovers() == [] && all().isEmpty)
  }
}
