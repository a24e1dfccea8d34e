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
  }

  @Test(.ownThread) func programsAreKilled() async throws {
    var generator = SeededGenerator(for: "programs of background sessions killed")
    var kills = 0
    while kills < Self.kills { kills += try await killUntilAllHasEnded(hasService: false, &generator) }
  }

  @Test(.ownThread) func programsAndTheServiceAreKilled() async throws {
    var generator = SeededGenerator(for: "programs and transfer services killed")
    var kills = 0
    while kills < Self.kills { kills += try await killUntilAllHasEnded(hasService: true, &generator) }
  }

  /// - Returns: The number of kills.
  private func killUntilAllHasEnded(hasService: Bool, _ generator: inout SeededGenerator) async throws -> Int {
    let fixture = try BackgroundFixture()
    defer { fixture.stopService() }
    let environment = hasService ? try fixture.serviceEnvironment() : nil
    _ = try fixture.file("ends", "")
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
      for _ in 0..<Int.random(in: 0..<20_000, using: &generator) { await Task.yield() }
    }

    var kills = 0
    while try kills < 50 && !hasEnded() {
      let program = try fixture.program(tasks, environment: environment)
      await wait(for: program, lines: 0...8)
      let victim = hasService ? Victim.allCases.randomElement(using: &generator) : .program
      if victim != .program, fixture.stopService() { kills += 1 }
      // The program connects with a new service.
      if victim == .service { await wait(for: program, lines: 0...4) }
      program.kill()
      kills += 1
    }
    _ = try fixture.program(tasks, environment: environment).text()
    for name in ["file-a", "file-b", "file-c"] {
      let content = try Data(contentsOf: fixture.folder.appending(path: name))
      #expect(content == Data(TestServer.content(count: Self.size)), "\(name)")
    }
    #expect(received.withLock { $0 } == Self.size)
    // A program that is killed right after a call of its delegate gets the call once more.
    #expect(Set(try fixture.ends()) == Set(names.map { "\($0) 0" }))
    // A service removes the last task behind the program's end.
    await eventually { fixture.journal().allSatisfy { $0 == "session" || $0 == "lock" } }
    return kills
  }
}
