import Foundation
import LarkspurBytes
import LarkspurIO
import Synchronization
import TestKit
import Testing

@testable import LarkspurTransferServer
@testable import LarkspurTransfers

/// Tests services that go on with the work of others, and services whose socket goes away.
@Suite(.ownThread) struct TransferRestartTests {
  private static func session(_ service: TestService) -> TransferSession {
    var session = service.session()
    session.launchCommand = ["/app"]
    return session
  }

  private static let end = Fixture.plain(.completed, events: [.completed])

  // MARK: - Journals of an earlier service

  /// A program is served while the journals are read, and the service does not end meanwhile.
  @Test func programsDoNotWaitForTheJournals() throws {
    let (service, reading, isRead) = (try TestService(), Latch(), Latch())
    let later = service.session("later")
    try service.start {
      reading.open()
      isRead.wait()
      return [later]
    }
    reading.wait()
    var client: TransferClient? = try service.client()
    withExtendedLifetime(client) {}
    client = nil
    try service.ended.wait(for: 1)
    service.clock.advance(by: .seconds(1000))
    try service.clock.waits.wait { $0.last == .never }
    #expect(service.stopped.all.isEmpty)
    isRead.open()
    // The session has no work: its runner is made, and goes.
    #expect(try service.ended.wait(for: 2).last == later.directory)
    let end = service.clock.now().advanced(by: .seconds(60))
    try service.clock.waits.wait { $0.last == end }
    service.clock.advance(by: .seconds(60))
    #expect(try service.ends.wait(for: 1) == [.idle])
  }

  /// A service that ends while it reads leaves no runner behind.
  @Test func theEndWhileAJournalIsRead() throws {
    let (service, reading, isRead) = (try TestService(), Latch(), Latch())
    service.plan { $0.records = [Fixture.plain(.running)] }
    let sessions = [service.session("a"), service.session("b")]
    try service.start {
      reading.open()
      isRead.wait()
      return sessions
    }
    reading.wait()
    try service.stop()
    isRead.open()
    #expect(service.linkCount == 0)
  }

  // MARK: - Launching

  /// The earlier service was killed before it launched the program, or the program before it took the events.
  @Test func aLaunchThatWasLost() throws {
    let service = try TestService()
    service.plan { $0.records = [Self.end] }
    let session = Self.session(service)
    try service.start { [session] }
    #expect(try service.launched.wait(for: 1) == [session])
    try service.ended.wait(for: 1)
    // Once for each start of the service, also if other programs come and go.
    for round in 2...3 {
      _ = try service.nextClient("b")
      try service.ended.wait(for: round)
    }
    try service.stop()
    #expect(service.launched.all.count == 1)
  }

  /// A program that dies seems attached for a moment, in which a task may end.
  @Test func aTaskThatEndsWhileItsProgramDies() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    let session = Self.session(service)
    var client: TransferClient? = try TransferClient(session, directory: service.directory)
    let notices = client?.collected()
    service.link?.report(.changed(Self.end))
    try notices?.wait(for: 1)
    #expect(service.launched.all.isEmpty)
    withExtendedLifetime(client) {}
    client = nil
    #expect(try service.launched.wait(for: 1) == [session])
    try service.ended.wait(for: 1)
    // A program that has been launched and dies again is launched again, and not for ever.
    service.plan { $0.records = [Self.end] }
    for round in 2...TransferServer.launchesMax + 2 {
      client = try TransferClient(session, directory: service.directory)
      withExtendedLifetime(client) {}
      client = nil
      try service.ended.wait(for: round)
    }
    try service.stop()
    #expect(service.launched.all.count == TransferServer.launchesMax)
    #expect(service.lines.all.contains { $0.contains("is not started again") })
  }

  // MARK: - A socket that goes away

  /// The end of a login removes the directory for runtime files.
  @Test(arguments: ["larkspur-transfers", "larkspur-transfers/socket"])
  func theSocketIsRemoved(path: String) throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    let client = try service.client()
    let notices = client.collected()
    try FileManager.default.removeItem(at: service.url.appending(path: path))
    #expect(try service.ends.wait(for: 1) == [.removed])
    #expect(try notices.wait(for: 1) == [.lost(reason: "the transfer service has ended")])
    // The session is free for the next service.
    try service.ended.wait(for: 1)
    try service.stop()
    try service.start()
    _ = try service.client()
  }

  @Test func theDirectoryIsRenamed() throws {
    let service = try TestService()
    try service.start()
    _ = try service.client()
    try FileManager.default.moveItem(atPath: service.directory, toPath: service.directory + "-old")
    #expect(try service.ends.wait(for: 1) == [.removed])
  }

  /// Other names in the directory are of no concern.
  @Test func otherFilesAreRemoved() throws {
    let service = try TestService()
    try service.start()
    for number in 0..<100 {
      let path = "\(service.directory)/\(number)"
      try Data().write(to: URL(filePath: path))
      try FileManager.default.removeItem(atPath: path)
    }
    _ = try service.client()
    try service.stop()
    #expect(service.ends.all == [.stopped])
  }

  // MARK: - Directories that are no session's

  /// A message can name any path. The server changes no permissions and writes no files there.
  @Test func foreignDirectories() throws {
    let service = try TestService()
    try service.start()
    let paths = [
      service.url.path + "/documents", service.stateHome + "/larkspur", service.stateHome + "/larkspur/transfers/app",
      service.url.path + "/other/larkspur/transfers/app/a",
    ]
    let administrator = TransferAdministrator(directory: service.directory)
    for path in paths {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
      var session = service.session()
      session.directory = path
      let error = TransferLinkError.unavailable(
        reason: "\(path) is not the directory of a session below \(service.stateHome)")
      #expect(throws: error) { try TransferClient(session, directory: service.directory) }
      #expect(throws: error) { try administrator.change(.pause, directory: path, tasks: .all) }
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o755)
    }
    #expect(service.linkCount == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: paths[0]).isEmpty)
  }
}
