import Foundation
import LarkspurBytes
import LarkspurIO
import TestKit
import Testing

@testable import LarkspurTransferServer
@testable import LarkspurTransfers

/// Tests the start and the end of a server, and programs that do not behave.
@Suite(.ownThread) struct TransferServerLifeTests {
  @Test func aServerWithoutWorkEnds() throws {
    let service = try TestService()
    try service.start()
    let start = service.clock.now()
    #expect(try service.clock.waits.wait(for: 1) == [start.advanced(by: .seconds(60))])
    service.clock.advance(by: .seconds(59))
    try service.clock.waits.wait(for: 2)
    #expect(service.stopped.all.isEmpty)
    service.clock.advance(by: .seconds(1))
    try service.stopped.wait(for: 1)
    #expect(throws: TransferClient.Failure.notRunning) { try TransferClient.connect(in: service.directory) }
  }

  @Test func aServerWithAProgramStays() throws {
    let service = try TestService()
    try service.start()
    try service.clock.waits.wait(for: 1)
    var client: TransferClient? = try service.client()
    service.clock.advance(by: .seconds(1000))
    // The server does not wake up by itself any more.
    try service.clock.waits.wait { $0.last == .never }
    withExtendedLifetime(client) {}
    client = nil
    try service.ended.wait(for: 1)
    // The idle time counts from the end of the last session.
    let end = service.clock.now().advanced(by: .seconds(60))
    try service.clock.waits.wait { $0.last == end }
    service.clock.advance(by: .seconds(60))
    try service.stopped.wait(for: 1)
  }

  @Test func oneServerForAUser() throws {
    let service = try TestService()
    try service.start()
    #expect(throws: TransferServerError.alreadyRunning) { try service.server() }
    // The second one has not taken the socket away.
    _ = try service.client()
    try service.stop()
    _ = try service.server()
  }

  @Test func twoServersAtOnce() throws {
    let service = try TestService()
    let results = Happenings<Result<TransferServer, any Error>>()
    for _ in 0..<8 {
      try SystemThread(name: "server") { results.add(Result { try service.server() }) }.detach()
    }
    let all = try results.wait(for: 8)
    #expect(all.count { (try? $0.get()) != nil } == 1)
  }

  /// The socket of a server that was killed is replaced.
  @Test func aStaleSocket() throws {
    let service = try TestService()
    let directory = try Directory.ofOwner(at: service.directory)
    let address = SocketAddress.unix(path: "\(service.directory)/\(TransferLocation.socket)")
    _ = try BlockingListener(address: address)
    #expect(throws: TransferClient.Failure.notRunning) { try TransferClient.connect(in: service.directory) }
    try service.start()
    _ = try service.client()
    let attributes = try FileManager.default.attributesOfItem(atPath: service.directory)
    #expect(attributes[.posixPermissions] as? Int == 0o700)
    withExtendedLifetime(directory) {}
  }

  @Test func aDirectoryThatCannotBeUsed() throws {
    let service = try TestService()
    try Data().write(to: URL(filePath: service.directory))
    #expect(throws: TransferServerError.unavailable(.notDirectory)) { try service.server() }
  }

  @Test func otherUsersAreRefused() throws {
    let users = Happenings<UInt32>()
    let service = try TestService { options in
      options.isAllowed = { user in
        users.add(user)
        return false
      }
    }
    try service.start()
    #expect(throws: TransferLinkError.unavailable(reason: "the transfer service has ended")) { try service.client() }
    #expect(users.all == [ProcessUser.effective])
    #expect(service.linkCount == 0)
    #expect(TransferServer.Options().isAllowed(ProcessUser.effective))
    #expect(!TransferServer.Options().isAllowed(ProcessUser.effective &+ 1))
  }

  @Test func aServiceThatGoesAway() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    try service.start()
    let client = try service.client()
    let notices = client.collected()
    try service.stop()
    #expect(try notices.wait(for: 1) == [.lost(reason: "the transfer service has ended")])
    // Nothing follows, and commands have no effect.
    client.send(.suspend(task: 1))
    #expect(notices.all.count == 1)
    try service.ended.wait(for: 1)
  }

  @Test func sessionsOfAnEarlierService() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.running)] }
    let sessions = [service.session("a"), service.session("b")]
    try service.start { sessions }
    let administrator = TransferAdministrator(directory: service.directory)
    try Wait.blocking(until: "both sessions are there") { try administrator.sessions()?.count == 2 }
    let client = try service.client("b")
    #expect(client.records == [Fixture.plain(.running)])
    #expect(service.linkCount == 2)
  }

  // MARK: - Programs that do not behave

  @Test func aProgramThatDoesNotRead() throws {
    let service = try TestService()
    let records = (1...50).map { Fixture.plain(.running, task: $0) }
    service.plan { $0.records = records }
    try service.start()
    let socket = try service.socket()
    try socket.send(TransferMessage.open(service.session()).encoded())
    var reader = TransferReader(socket)
    #expect(try reader.next() == .records(records))
    #expect(try reader.next() == .opened)
    let link = try #require(service.link)
    var counts = TransferRecord.Counts()
    // Far more than the socket takes: the runner is not held up.
    for number in 1...100_000 {
      counts.received = Int64(number)
      link.report(.progress(task: 1 + number % 50, counts))
    }
    let end = Fixture.plain(.completed, task: 7, events: [.completed])
    link.report(.changed(end))
    // Other programs are served meanwhile.
    _ = try service.client("b")
    // The program reads at last: each task's latest state comes.
    var (received, frames) = ([Int: Int64](), 0)
    while received.count(where: { $0.value > 99_950 }) < 49 {
      frames += 1
      switch try reader.next() {
      case .notice(.progress(let task, let counts)):
        #expect(counts.received > received[task] ?? 0)
        received[task] = counts.received
      case .notice(.changed(let record)): #expect(record == end)
      case let other: Issue.record("\(String(describing: other))")
      }
    }
    #expect(frames < 50_000)
  }

  /// More passwords are asked for than are kept for a program that does not read: it is asked for all in the end.
  @Test func aProgramThatReadsItsQuestionsLate() throws {
    let service = try TestService()
    let tasks = 2 * ServedSessionMachine.questionsMax
    service.plan { $0.records = (1...tasks).map { Fixture.plain(.running, task: $0) } }
    try service.start()
    let socket = try service.socket()
    try socket.send(TransferMessage.open(service.session()).encoded())
    var reader = TransferReader(socket)
    while let message = try reader.next(), message != .opened {}
    var challenge = Fixture.challenge
    // Together far more than the socket takes.
    challenge.realm = String(repeating: "x", count: 2_000)
    let link = try #require(service.link)
    for task in 1...tasks { link.report(.question(UInt64(task), task: task, .challenge(challenge))) }
    var asked: [Int] = []
    while asked.count < tasks, case .notice(.question(_, let task, _)) = try reader.next() { asked.append(task) }
    #expect(asked == Array(1...tasks))
  }

  /// A connection that says nothing is ended, and so is one that does not take its list.
  @Test func connectionsThatHang() throws {
    let service = try TestService { $0.timeout = .milliseconds(100) }
    // Far more than the socket takes.
    service.plan { $0.records = (1...10_000).map { Fixture.plain(.running, task: $0) } }
    let sessions = [service.session()]
    try service.start { sessions }
    #expect(try service.socket().waitForPeerEnd())
    var hasBegun = false
    // The session may not be open yet.
    while !hasBegun {
      // The socket may be ended before it has sent anything.
      let socket = try service.socket()
      _ = try? socket.send(TransferMessage.administer(.list).encoded())
      #expect(socket.waitForPeerEnd())
      var reader = TransferReader(socket)
      var isWhole = false
      while case .some(.some(let message)) = try? reader.next() {
        if case .done = message { isWhole = true } else { hasBegun = true }
      }
      #expect(!hasBegun || !isWhole)
    }
  }

  @Test func aThousandTasks() throws {
    let service = try TestService()
    let records = (1...1_000).map { Fixture.plain(.running, task: $0) }
    service.plan { $0.records = records }
    try service.start()
    #expect(try service.client().records == records)
  }

  /// What no program says ends its connection, and nothing more.
  @Test func nonsense() throws {
    let service = try TestService()
    try service.start()
    let open = try TransferMessage.open(service.session()).encoded()
    var later = open
    later[TransferFrame.headCount + TransferMessage.name.count] = UInt8(TransferMessage.version + 1)
    let nonsense: [([UInt8], String)] = [
      (Array("GET / HTTP/1.1\r\n\r\n".utf8), "bytes, and may have"),
      ([1, 0, 0, 0, 200], "the name is missing"),
      (later, "version \(TransferMessage.version + 1)"), (try TransferMessage.opened.encoded(), "asks for nothing"),
      (try TransferMessage.command(.resume(task: 1)).encoded(), "asks for nothing"),
      ([4, 0, 0, 0, 76, 75, 84, 83], "the version is missing"),
    ]
    for (bytes, words) in nonsense {
      let socket = try service.socket()
      try socket.send(bytes)
      var reader = TransferReader(socket)
      guard case .refused(.unavailable(let reason)) = try reader.next() else {
        Issue.record("\(words): no refusal")
        continue
      }
      #expect(reason.contains(words), "\(reason)")
      #expect(try reader.next() == nil)
    }
    // After the opening, too.
    let socket = try service.socket()
    try socket.send(open + [1, 0, 0, 0, 200])
    var reader = TransferReader(socket)
    while let message = try reader.next() { #expect(message == .opened) }
    // A connection that ends within a message.
    try service.socket().send(Array(open.dropLast()))
    _ = try service.nextClient()
  }

  /// A service of another version says so.
  @Test func aServiceOfAnotherVersion() throws {
    let service = try TestService()
    _ = try Directory.ofOwner(at: service.directory)
    let listener = try BlockingListener(address: .unix(path: "\(service.directory)/\(TransferLocation.socket)"))
    try SystemThread(name: "other-service") {
      guard let socket = try? listener.accept() else { return }
      _ = try? socket.send([12, 0, 0, 0] + TransferMessage.name + [9, 0, 0, 0, 1, 2, 3, 4])
      _ = socket.waitForPeerEnd()
    }.detach()
    do throws(TransferLinkError) {
      _ = try TransferClient(service.session(), directory: service.directory)
      Issue.record("the session was opened")
    } catch {
      #expect("\(error)".contains("version 9"), "\(error)")
    }
  }

  // MARK: - Administration

  @Test func theUserChangesTasks() throws {
    let service = try TestService()
    let administrator = TransferAdministrator(directory: service.directory)
    #expect(try administrator.sessions() == nil)
    service.plan { $0.records = [Fixture.plain(.running), Fixture.plain(.suspended, task: 2)] }
    try service.start()
    #expect(try administrator.sessions() == [])
    let client = try service.client()
    let notices = client.collected()
    let directory = service.session().directory
    #expect(
      try administrator.sessions() == [
        .init(
          session: TransferServedSession(identifier: Fixture.session, directory: directory, isAttached: true),
          records: [Fixture.plain(.running), Fixture.plain(.suspended, task: 2)])
      ])
    #expect(try administrator.change(.pause, directory: directory, tasks: .all) == 1)
    #expect(try administrator.change(.resume, directory: directory, tasks: .some([2, 9])) == 1)
    #expect(try administrator.change(.cancel, directory: directory, tasks: .some([1])) == 1)
    #expect(
      try service.link?.commands.wait(for: 3) == [
        .suspend(task: 1), .resume(task: 2), .cancel(task: 1, isKeepingContent: false),
      ])
    let expected: [TransferNotice] = [
      .changed(Fixture.plain(.canceling)), .changed(Fixture.plain(.running, task: 2)),
    ]
    try notices.wait { received in expected.allSatisfy(received.contains) }
    #expect(throws: TransferLinkError.self) { try administrator.change(.pause, directory: "/none", tasks: .all) }
  }

  /// A session that has no runner is opened from its file.
  @Test func theUserResumesASleepingSession() throws {
    let service = try TestService()
    service.plan { $0.records = [Fixture.plain(.suspended)] }
    try TransferSessionFile.write(service.session())
    try service.start()
    let administrator = TransferAdministrator(directory: service.directory)
    #expect(try administrator.change(.resume, directory: service.session().directory, tasks: .all) == 1)
    #expect(try service.link?.commands.wait(for: 1) == [.resume(task: 1)])
    #expect(service.ended.all.isEmpty)
  }
}
