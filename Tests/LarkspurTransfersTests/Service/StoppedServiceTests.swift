import LarkspurBytes
import LarkspurIO
import TestKit
import Testing

@testable import LarkspurTransfers

/// Tests programs whose service was stopped: it listens, and does nothing.
@Suite(.ownThread) struct StoppedServiceTests {
  private let service: TestService
  private let listener: BlockingListener
  private let silence = TransferLinkError.unavailable(reason: "the transfer service does not answer")

  init() throws {
    service = try TestService()
    _ = try Directory.ofOwner(at: service.directory)
    listener = try BlockingListener(
      address: .unix(path: "\(service.directory)/\(TransferLocation.socket)"), backlog: 0)
  }

  @Test func anAdministratorFails() throws {
    let administrator = TransferAdministrator(directory: service.directory, timeout: .milliseconds(1))
    #expect(throws: silence) { try administrator.sessions() }
    withExtendedLifetime(listener) {}
  }

  /// A service that ends before it answers is none: another one can be asked.
  @Test func aServiceThatEnds() throws {
    let listener = listener
    try SystemThread(name: "ending-service") {
      for _ in 0..<2 { _ = try? listener.accept() }
    }.detach()
    let administrator = TransferAdministrator(directory: service.directory)
    #expect(try administrator.sessions() == nil)
    #expect(try administrator.change(.pause, directory: "/d", tasks: .all) == nil)
  }

  @Test func aProgramFails() throws {
    #expect(throws: silence) {
      try TransferClient(service.session(), directory: service.directory, timeout: .milliseconds(1))
    }
    withExtendedLifetime(listener) {}
  }

  /// The kernel opens as many connections as the listener has asked for, and holds the next one up.
  @Test func aFullQueue() throws {
    var sockets: [BlockingSocket] = []
    #expect(throws: TransferClient.Failure.refused(silence)) {
      while sockets.count < 10_000 {
        let deadline = LinuxKernel.shared.now().advanced(by: .milliseconds(1))
        sockets.append(try TransferClient.connect(in: service.directory, until: deadline))
      }
    }
    let administrator = TransferAdministrator(directory: service.directory, timeout: .milliseconds(1))
    #expect(throws: silence) { try administrator.change(.pause, directory: "/d", tasks: .all) }
    withExtendedLifetime((listener, sockets)) {}
  }

  /// A session that ends gets its identifier back, even if the service takes none of its commands any more.
  @Test func aSessionEnds() throws {
    let (listener, ended) = (listener, Happenings<Bool>())
    try SystemThread(name: "stopping-service") {
      if let socket = try? listener.accept() {
        _ = try? socket.send((try? TransferMessage.opened.encoded()) ?? [])
        _ = socket.waitForPeerEnd()
      }
      ended.add(true)
    }.detach()
    let client = try TransferClient(
      service.session(), in: service.directory, until: LinuxKernel.shared.now().advanced(by: .seconds(60)),
      closingTimeMax: .milliseconds(10))
    let description = String(repeating: "x", count: 1000)
    for task in 1...2000 {
      client.send(.update(task: task, TransferProperties(description: description, priority: 0.5)))
    }
    let closed = Happenings<Bool>()
    client.close { closed.add(true) }
    try closed.wait(for: 1)
    try ended.wait(for: 1)
  }

  /// An answer that does not end is cut off as a whole, and not for each of its parts.
  @Test func anAnswerWithoutEnd() throws {
    let (listener, ended) = (listener, Happenings<Bool>())
    try SystemThread(name: "slow-service") {
      if let socket = try? listener.accept() {
        let word = TransferServedSession(identifier: "a", directory: "/d", isAttached: false)
        let frame = (try? TransferMessage.serves(word).encoded()) ?? []
        // One byte of a message, and never the rest.
        _ = try? socket.send(frame + frame.prefix(1))
        _ = socket.waitForPeerEnd()
      }
      ended.add(true)
    }.detach()
    let administrator = TransferAdministrator(directory: service.directory, timeout: .milliseconds(20))
    #expect(throws: silence) { try administrator.sessions() }
    try ended.wait(for: 1)
  }
}
