import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurSimulation
import Testing

@testable import LarkspurTransfers

@Suite struct TransferSessionFileTests {
  /// A temporary directory for state. Deinitialization removes it.
  private final class Place {
    let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-sessions-\(UUID().uuidString)")
    var path: String { url.path }

    deinit { try? FileManager.default.removeItem(at: url) }

    func session(_ program: String, _ name: String) -> TransferSession {
      Fixture.transferSession(TransferLocation.directory(stateHome: path, program: program, session: name))
    }
  }

  private static let minimal = TransferSession(identifier: "a", directory: "/a", settings: [])

  @Test func whatIsWrittenIsRead() throws {
    for session in [Fixture.transferSession(), Self.minimal] {
      let bytes = try TransferSessionFile.encoded(session)
      #expect(try TransferSessionFile.decoded(bytes, directory: session.directory) == session)
    }
    let place = Place()
    var session = place.session("app", "one")
    #expect(try TransferSessionFile.read(in: session.directory) == nil)
    try TransferSessionFile.write(session)
    #expect(try TransferSessionFile.read(in: session.directory) == session)
    session.settings = [9]
    try TransferSessionFile.write(session)
    #expect(try TransferSessionFile.read(in: session.directory) == session)
    let path = session.directory + "/session"
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
    #expect(try FileManager.default.contentsOfDirectory(atPath: session.directory) == ["session"])
    // The journal leaves the file alone.
    _ = try TransferJournal.waiting(at: session.directory)
    #expect(try TransferSessionFile.read(in: session.directory) == session)
  }

  @Test func damage() throws {
    let bytes = try TransferSessionFile.encoded(Fixture.transferSession())
    func isDamaged(_ file: [UInt8]) -> Bool {
      do throws(TransferValueError) {
        _ = try TransferSessionFile.decoded(file, directory: "/a")
        return false
      } catch .damaged {
        return true
      } catch {
        return false
      }
    }
    for count in 0..<bytes.count { #expect(isDamaged(Array(bytes.prefix(count))), "\(count) bytes") }
    for index in bytes.indices {
      for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] as [UInt8] {
        var changed = bytes
        changed[index] ^= change
        #expect(isDamaged(changed), "byte \(index), bits \(change)")
      }
    }
    // A task's record is no session, and a session no task.
    #expect(isDamaged(try Fixture.plain().encoded()))
    #expect(throws: TransferValueError.damaged("the file is no record")) { try TransferRecord(file: bytes) }
    let later = RecordEnvelope(name: "LKTP", version: TransferSessionFile.formatVersion + 1).wrapped([1, 2])
    #expect(
      throws: TransferValueError.otherVersion(
        TransferSessionFile.formatVersion + 1, known: TransferSessionFile.formatVersion)
    ) {
      try TransferSessionFile.decoded(later, directory: "/a")
    }
    let large = [UInt8](repeating: 0, count: TransferSessionFile.bytesMax + 1)
    #expect(throws: TransferValueError.tooLarge(large.count, max: TransferSessionFile.bytesMax)) {
      try TransferSessionFile.decoded(large, directory: "/a")
    }
  }

  @Test func theLargestSession() throws {
    var session = Fixture.transferSession()
    session.settings = [UInt8](repeating: 7, count: TransferSession.settingsBytesMax)
    session.launchCommand = Array(repeating: "/" + String(repeating: "x", count: 255), count: 256)
    session.identifier = String(repeating: "x", count: TransferRecord.sessionBytesMax)
    let bytes = try TransferSessionFile.encoded(session)
    #expect(bytes.count <= TransferSessionFile.bytesMax)
    #expect(try TransferSessionFile.decoded(bytes, directory: session.directory) == session)
    session.settings.append(7)
    #expect(throws: TransferValueError.invalid("the size of the settings")) {
      try TransferSessionFile.encoded(session)
    }
  }

  /// The disk fails at any step: the earlier file stays, and no other file is left.
  @Test func aDiskThatFails() throws {
    let session = Self.minimal
    var other = session
    other.settings = [1]
    let earlier = try TransferSessionFile.encoded(session)
    var failures = 0
    for steps in 0..<8 {
      let disk = ScriptedDisk()
      try TransferSessionFile.write(session, to: disk)
      disk.fail(after: steps, once: true)
      let result = Result { try TransferSessionFile.write(other, to: disk) }
      let bytes = disk.bytes("session")
      switch result {
      case .failure(TransferJournalError.unwritten):
        #expect(bytes == earlier, "step \(steps)")
        failures += 1
      case .failure(TransferJournalError.unsynced), .success: #expect(bytes != earlier, "step \(steps)")
      case .failure(let error): Issue.record("\(error)")
      }
      #expect(disk.bytes("session.new") == nil)
    }
    #expect(failures > 3)
  }

  @Test func theListOfSessions() throws {
    let place = Place()
    #expect(try TransferLocation.sessions(stateHome: place.path).sessions.isEmpty)
    let sessions = [place.session("app", "one"), place.session("app", "two"), place.session("other", "one")]
    let group = Fixture.transferSession(
      TransferLocation.directory(stateHome: place.path, container: "group.a", session: "s"))
    for session in sessions + [group] { try TransferSessionFile.write(session) }
    // A directory without a session's file, one with a damaged file, and a file in place of a directory.
    let empty = place.session("app", "empty").directory
    let damaged = place.session("app", "damaged").directory
    for path in [empty, damaged] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    try Data("LKTP".utf8).write(to: URL(filePath: damaged + "/session"))
    try Data().write(to: URL(filePath: place.path + "/larkspur/transfers/file"))
    // Links are not followed: to a session, to a program's directory and to a session's file.
    let transfers = place.path + "/larkspur/transfers"
    for (link, target) in [
      (transfers + "/app/link", sessions[0].directory), (transfers + "/link", transfers + "/app"),
      (empty + "/session", sessions[0].directory + "/session"), (transfers + "/loop", transfers + "/loop"),
    ] {
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
    }
    let found = try TransferLocation.sessions(stateHome: place.path)
    #expect(found.sessions == [group] + sessions)
    #expect(found.problems.map(\.directory) == [damaged, empty])
    #expect(found.problems.first?.reason == .record(.damaged("the head is incomplete")))
    #expect(found.problems.last?.reason == .unavailable(.tooManyLinks))
    // Below the limit all is found, and beyond it the user is told.
    #expect(try TransferLocation.sessions(stateHome: place.path, directoriesMax: 14).problems.count == 2)
    let part = try TransferLocation.sessions(stateHome: place.path, directoriesMax: 7)
    #expect(part.problems.last?.reason == .crowded(directoriesMax: 7) && part.sessions.count < found.sessions.count)
  }

  @Test(
    arguments: [
      (["XDG_RUNTIME_DIR": "/run/user/1000", "HOME": "/h"], "/run/user/1000/larkspur-transfers"),
      (["XDG_RUNTIME_DIR": "run", "HOME": "/h"], "/h/.local/state/larkspur/service"),
      (["XDG_STATE_HOME": "/s"], "/s/larkspur/service"), ([:], nil),
    ] as [([String: String], String?)])
  func theServicesDirectory(environment: [String: String], expected: String?) {
    #expect(TransferLocation.service { environment[$0] } == expected)
  }
}
