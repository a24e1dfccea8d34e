import Foundation
import LarkspurIO
import TestKit
import Testing

@testable import LarkspurTransferServer
@testable import LarkspurTransfers

/// Tests a server and its clients over real sockets, with scripted runners.
@Suite(.ownThread) struct TransferServerTests {
  @Test func commandsAndNoticesTravel() throws {
    let service = try TestService()
    // A task that is not there asks nothing.
    let records = [Fixture.plain(), Fixture.plain(task: 2)] + Fixture.all.dropFirst()
    service.plan { $0.records = records }
    try service.start()
    let client = try service.client()
    #expect(client.records == records)
    let link = try #require(service.link)
    #expect(link.session == service.session())
    for command in Fixture.commands { client.send(command) }
    #expect(try link.commands.wait(for: Fixture.commands.count) == Fixture.commands)
    let notices = client.collected()
    for notice in Fixture.notices {
      link.report(notice)
      try notices.wait { $0.last == notice }
    }
    #expect(notices.all == Fixture.notices)
  }

  /// Notices from before `start` are kept.
  @Test func noticesBeforeTheStart() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    let client = try service.client()
    var counts = TransferRecord.Counts()
    counts.received = 5
    service.link?.report(.progress(task: 1, counts))
    #expect(try client.collected().wait(for: 1) == [.progress(task: 1, counts)])
  }

  /// Two programs that attach at the same time: one of them has the session.
  @Test func twoProgramsAtOnce() throws {
    let service = try TestService()
    try service.start()
    let results = Happenings<Result<TransferClient, any Error>>()
    for _ in 0..<8 {
      try SystemThread(name: "program") { results.add(Result { try service.client() }) }.detach()
    }
    let all = try results.wait(for: 8)
    #expect(all.count { (try? $0.get()) != nil } == 1)
    #expect(service.linkCount == 1)
  }

  @Test func tasksGoOnWithoutTheirProgram() throws {
    let service = try TestService()
    try service.start()
    var client: TransferClient? = try service.client()
    client?.send(.create(Fixture.plain(.running)))
    client = nil
    var link = service.link
    #expect(try link?.commands.wait(for: 1) == [.create(Fixture.plain(.running))])
    var counts = TransferRecord.Counts()
    counts.received = 7
    link?.report(.progress(task: 1, counts))
    // The program comes back to the same runner, and sees how far the task is.
    client = try service.nextClient()
    #expect(client?.records.map(\.counts.received) == [7])
    #expect(service.linkCount == 1)
    client?.send(.suspend(task: 1))
    client?.send(.resume(task: 1))
    try link?.commands.wait(for: 3)
    client = nil
    link?.report(.changed(Fixture.plain(.completed, events: [.completed])))
    link = nil
    try service.ended.wait(for: 1)
    #expect(service.launched.all.isEmpty)
  }

  @Test func runnersThatCannotBeMade() throws {
    let service = try TestService()
    try service.start()
    service.plan { $0.errors = [.inUse] }
    #expect(throws: TransferLinkError.inUse) { try service.client() }
    service.plan { $0.errors = [.unavailable(reason: "no disk")] }
    #expect(throws: TransferLinkError.unavailable(reason: "no disk")) { try service.client() }
    _ = try service.client()
  }

  /// A program whose runner does not answer until the test does so.
  private func heldBack() throws -> (TestService, TransferClient) {
    let service = try TestService()
    service.plan { ($0.isPrompt, $0.records) = (false, [Fixture.plain(.running)]) }
    try service.start()
    return (service, try service.client())
  }

  /// The end of a task that could not be made comes before the word that all commands have been carried out.
  @Test func noticesGoBeforeTheAnswer() throws {
    let (service, client) = try heldBack()
    let notices = client.collected()
    let link = try #require(service.link)
    let before = Happenings<Int>()
    for number in 1...50 {
      client.flush { _ in before.add(notices.all.count) }
      let answer = try #require(try link.completions.wait(for: number).last)
      link.report(.question(UInt64(number), task: 1, .challenge(Fixture.challenge)))
      answer()
      #expect(try before.wait(for: number).last == number)
    }
  }

  /// A program that sends faster than the disk writes waits: what has been read and not been carried out is in memory.
  @Test func commandsWaitForTheRunner() throws {
    let (service, client) = try heldBack()
    let link = try #require(service.link)
    for _ in 0..<TransferServer.commandsMax * 3 { client.send(.suspend(task: 1)) }
    for round in 1...2 {
      let answer = try #require(try link.completions.wait(for: round).last)
      // No other command has come since the runner was asked.
      #expect(link.commands.all.count == round * TransferServer.commandsMax + round - 1)
      answer()
    }
    try link.commands.wait(for: TransferServer.commandsMax * 3)
  }

  @Test func connectionsAreLimited() throws {
    let service = try TestService()
    try service.start()
    var sockets = try (0..<TransferServer.connectionsMax).map { _ in try service.socket() }
    do throws(TransferLinkError) {
      while true { _ = try TransferClient(service.session(), directory: service.directory) }
    } catch {
      #expect("\(error)".contains("has \(TransferServer.connectionsMax) connections"), "\(error)")
    }
    sockets = []
    #expect(sockets.isEmpty)
    while true {
      let result = Result { try service.client() }
      // The ends of the other connections are being read.
      if case .failure(TransferLinkError.unavailable) = result { continue }
      _ = try result.get()
      break
    }
  }

  /// A program that was killed is started again at once. The end of its connection may not have been read yet.
  @Test func aProgramThatComesBackAtOnce() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    for round in 0..<50 {
      let open = try TransferMessage.open(service.session("\(round)")).encoded()
      var socket: BlockingSocket? = try service.socket()
      try socket?.send(open)
      if let open = socket {
        var reader = TransferReader(open)
        while let message = try reader.next(), message != .opened {}
      }
      // A process that another test is starting has a copy of the socket for a moment.
      socket?.shutDown()
      socket = nil
      _ = try service.client("\(round)")
    }
  }

  @Test func flushing() throws {
    let (service, client) = try heldBack()
    let notices = client.collected()
    let link = try #require(service.link)
    let flushed = Happenings<Int>()
    for number in 1...3 {
      client.send(.suspend(task: number))
      client.flush { _ in flushed.add(number) }
    }
    let completions = try link.completions.wait(for: 3)
    // The runner has had the commands when it is asked.
    #expect(link.commands.all.count == 3)
    #expect(flushed.all.isEmpty)
    completions[1]()
    #expect(try flushed.wait(for: 2) == [1, 2])
    completions[2]()
    #expect(try flushed.wait(for: 3) == [1, 2, 3])
    // A service that ends confirms nothing.
    client.flush { flushed.add($0 ? 4 : -4) }
    let stopping = try #require(try link.completions.wait(for: 4).last)
    service.askToStop()
    #expect(try flushed.wait(for: 4).last == -4)
    #expect(try notices.wait(for: 1) == [.lost(reason: "the transfer service has ended")])
    client.flush { flushed.add($0 ? 5 : -5) }
    #expect(flushed.all.last == -5)
    stopping()
    try link.completions.wait(for: 5).last?()
    try service.stopped.wait(for: 1)
  }

  /// After the call of its function, another program can have the session.
  @Test func closing() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    for round in 1...20 {
      let client = try service.client()
      let notices = client.collected()
      client.send(.suspend(task: 1))
      client.send(.resume(task: 1))
      let closed = Happenings<Bool>()
      client.close { closed.add(true) }
      try closed.wait(for: 1)
      #expect(service.link?.commands.all.count == 2 * round)
      #expect(notices.all.isEmpty)
      client.close { closed.add(true) }
      try closed.wait(for: 2)
    }
    #expect(service.linkCount == 1)
  }

  @Test func otherSettingsReplaceTheRunner() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    var client: TransferClient? = try service.client()
    withExtendedLifetime(client) {}
    client = nil
    client = try service.nextClient()
    #expect(service.linkCount == 1)
    client = nil
    var session = service.session()
    session.settings = [2]
    while client == nil { client = try? TransferClient(session, directory: service.directory) }
    #expect(service.link?.session.settings == [2])
    #expect(service.linkCount == 2)
    #expect(try service.ended.wait(for: 1).count == 1)
    #expect(try TransferSessionFile.read(in: session.directory) == session)
    // Another session cannot take the directory over.
    session.identifier = "other"
    #expect(throws: TransferLinkError.self) { try TransferClient(session, directory: service.directory) }
  }

  // MARK: - Questions

  /// An answer that cannot be sent, here because of its size, must not leave the question open.
  @Test func answersThatCannotTravel() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    let client = try service.client()
    let link = try #require(service.link)
    var request = TransferRequest(url: "http://example.com/")
    request.body = [UInt8](repeating: 0, count: TransferFrame.bytesMax)
    client.send(.answer(question: 1, .useNewRequest(request)))
    #expect(try link.commands.wait(for: 1) == [.answer(question: 1, .cancel)])
  }

  // MARK: - Launching

  @Test func aProgramIsLaunchedForItsEvents() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    var session = service.session()
    session.launchCommand = ["/app", "--events"]
    try service.start { [session] in [session] }
    // The session is listed once its runner has been made.
    while service.link == nil { _ = try TransferAdministrator(directory: service.directory).sessions() }
    service.link?.report(.changed(Fixture.plain(.completed, events: [.completed])))
    #expect(try service.launched.wait(for: 1) == [session])
    try service.ended.wait(for: 1)
  }
}
