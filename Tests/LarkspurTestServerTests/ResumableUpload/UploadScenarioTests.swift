import LarkspurHTTP
import LarkspurTestServer
import TestKit
import Testing

/// The client's machine against the server's ledger: the server has the bytes of the file, each once.
@Suite(.ownThread) struct UploadScenarioTests {
  typealias Server = TestServer.ResumableUpload
  typealias Settings = ResumableUploadMachine.Settings

  private static func settings(_ version: ResumableUploadVersion) -> Settings {
    var settings = Settings()
    settings.version = version
    settings.retry.failuresMax = nil
    return settings
  }

  private func expectWhole(_ world: UploadScenario, _ outcome: UploadScenario.Outcome) {
    #expect(outcome == .delivered(status: 200) || outcome == .learned)
    #expect(world.ledger.uploads.last?.bytes == world.file && world.ledger.uploads.last?.isComplete == true)
  }

  /// The first request is cut at each byte, and the second one at each of its bytes.
  @Test(arguments: ResumableUploadVersion.allCases) func everyTwoCuts(version: ResumableUploadVersion) {
    var random = SeededGenerator(seed: 1)
    let file = TestServer.content(count: 12)
    for first in 0...12 {
      for second in 0...12 - first {
        var world = UploadScenario(file: file, Server(), Self.settings(version))
        var cuts = [first, second]
        let outcome = world.run(
          &random,
          faults: { request, _ in
            guard request.kind != .offsetRetrieval, !cuts.isEmpty else { return .none }
            return UploadScenario.FaultProfile(cut: cuts.removeFirst(), lost: 3)
          })
        expectWhole(world, outcome)
        #expect(world.ledger.uploads.count == 1 && cuts.isEmpty)
      }
    }
  }

  /// The server itself breaks the connection at each byte.
  @Test(arguments: ResumableUploadVersion.allCases, [true, false])
  func theServerCutsAtEachByte(version: ResumableUploadVersion, resets: Bool) {
    var random = SeededGenerator(seed: 2)
    for count in 0...12 {
      var server = Server()
      server.faults = [resets ? .cut(afterBytes: count) : .close(afterBytes: count)]
      var world = UploadScenario(file: TestServer.content(count: 12), server, Self.settings(version))
      let outcome = world.run(&random, faults: { _, _ in .none })
      expectWhole(world, outcome)
      #expect(world.ledger.uploads.count == 1)
    }
  }

  private static func settings(_ random: inout SeededGenerator) -> Settings {
    var settings = Self.settings(ResumableUploadVersion.allCases.randomElement(using: &random) ?? .interop8)
    if Bool.random(using: &random) { settings.contentMax = .random(in: 10...100, using: &random) }
    return settings
  }

  private static func faults(_ count: Int, _ random: inout SeededGenerator) -> UploadScenario.FaultProfile {
    var faults = UploadScenario.FaultProfile()
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1: faults.cut = .random(in: 0...count, using: &random)
    case 2: faults.losesResponse = true
    default: break
    }
    faults.losesInterim = Int.random(in: 0..<5, using: &random) == 0
    faults.lost = .random(in: 0...30, using: &random)
    return faults
  }

  /// An honest server in any faults, with a program that is stopped and continues.
  @Test func honestServers() {
    var random = SeededGenerator(for: "UploadScenarioTests.honestServers")
    var (delivered, learned, unannounced) = (0, 0, 0)
    for _ in 0..<1500 {
      var server = Server()
      let faults: [Server.Fault] = [
        .none, .cut(afterBytes: 5), .cut(afterBytes: .random(in: 0...300, using: &random)), .close(afterBytes: 9),
        .loseResponse, .hang, .status(503), .status(500, retryAfter: 2), .none,
      ]
      server.faults =
        [.none] + (0..<Int.random(in: 0...6, using: &random)).compactMap { _ in faults.randomElement(using: &random) }
      if Bool.random(using: &random) { server.progressBytes = .random(in: 1...40, using: &random) }
      if Bool.random(using: &random) { server.limits.maxAppendSize = .random(in: 10...200, using: &random) }
      server.enforcesLimits = Bool.random(using: &random)
      var world = UploadScenario(
        file: TestServer.content(count: .random(in: 0...300, using: &random)), server, Self.settings(&random))
      var storms = 12
      let outcome = world.run(
        &random,
        faults: { request, random in
          storms -= 1
          return storms > 0 ? Self.faults(request.content.count, &random) : .none
        },
        isPausing: { random in storms > 0 && Int.random(in: 0..<6, using: &random) == 0 })
      let uploads = world.ledger.uploads
      #expect(uploads.allSatisfy { world.file.starts(with: $0.bytes) })
      switch outcome {
      case .delivered(status: 200):
        delivered += 1
        expectWhole(world, outcome)
      case .learned:
        learned += 1
        expectWhole(world, outcome)
      // The connection broke before the server was known to support resumption.
      case .failed(.connection):
        unannounced += 1
        #expect(uploads.count <= 1 && world.machine.point == nil)
      // The response to a creation that was not announced.
      case .delivered(status: 500), .delivered(status: 503): #expect(world.machine.point == nil)
      default: Issue.record("\(outcome)")
      }
    }
    #expect(delivered > 300 && learned > 30 && unannounced > 30)
  }

  /// Servers that lie and lose bytes: the upload ends, the server has a beginning of the file, and only a server that
  /// lies about the completeness, or by a field, makes the client take a part for the whole.
  @Test func dishonestServers() {
    var random = SeededGenerator(for: "UploadScenarioTests.dishonestServers")
    var failures: Set<UploadFailure> = []
    for _ in 0..<2500 {
      var server = Server()
      let lie = Int.random(in: 0...400, using: &random)
      let faults: [Server.Fault] = [
        .none, .cut(afterBytes: lie), .offset(lie), .noOffset, .complete(true), .complete(false), .forget(status: 404),
        .forget(status: 410), .lose(bytes: lie / 4), .conflict, .redirect(status: 307, to: "/files/1"),
        .redirect(status: 308, to: "http://other/x"), .field("Location", "/files/2"),
        .field("Upload-Limit", "max-size=\(lie)"),
        .field("Upload-Offset", "\"x\""), .field("Upload-Length", String(lie)), .status(404), .status(308),
        .field("Upload-Limit", "max-append-size=\(lie / 40)"), .status(413), .hang, .loseResponse,
      ]
      server.faults = (0..<Int.random(in: 1...10, using: &random)).compactMap { _ in
        faults.randomElement(using: &random)
      }
      server.announcedVersion = Int.random(in: 0..<10, using: &random) == 0 ? 6 : nil
      server.announces = Int.random(in: 0..<10, using: &random) != 0
      server.progressBytes = Bool.random(using: &random) ? 7 : nil
      var settings = Self.settings(&random)
      settings.retry.failuresMax = 8
      let losesBytes = server.faults.contains(.lose(bytes: lie / 4))
      // An offset that is a lie can hide that bytes were lost. From version 9 on an upload may be complete without them.
      let liesOfTheEnd =
        server.faults.contains { fault in
          switch fault {
          case .complete, .field: true
          default: false
          }
        } || losesBytes && (server.faults.contains(.offset(lie)) || settings.version.rawValue >= 9)
      var world = UploadScenario(
        file: TestServer.content(count: .random(in: 0...300, using: &random)), server, settings)
      let outcome = world.run(&random, faults: { request, random in Self.faults(request.content.count, &random) })
      #expect(outcome != .endless)
      #expect(world.ledger.uploads.allSatisfy { world.file.starts(with: $0.bytes) })
      switch outcome {
      case .delivered(status: 200), .learned: if !liesOfTheEnd { expectWhole(world, outcome) }
      case .failed(let failure): failures.insert(failure)
      case .delivered, .endless: break
      }
    }
    #expect(failures.contains(.resourceGone(status: 404)) && failures.contains(.resourceGone(status: 410)))
    #expect(failures.contains(.noOffset) && failures.contains(.connection))
    let kinds = Set(failures.map { String("\($0)".prefix { $0 != "(" }) })
    #expect(kinds.isSuperset(of: ["offsetBeyondEnd", "offsetDecreased", "completedTooEarly", "limits", "status"]))
  }

  /// A program that changes its mind: the upload resource is deleted.
  @Test func cancellation() {
    var random = SeededGenerator(seed: 3)
    var server = Server()
    server.faults = [.cut(afterBytes: 4)]
    var world = UploadScenario(file: TestServer.content(count: 9), server, Self.settings(.interop8))
    guard case .send(let creation) = world.machine.start(now: 0), case .wait = world.send(creation, &random) else {
      Issue.record("the first request has not broken off")
      return
    }
    guard case .send(let request) = world.machine.fileChanged() else {
      Issue.record("no cancellation")
      return
    }
    #expect(request.method == "DELETE")
    let last = world.send(request, &random)
    #expect(last == .fail(.fileChanged))
    #expect(world.ledger.uploads[0].isActive == false && world.ledger.uploads[0].bytes.count == 4)
  }
}
