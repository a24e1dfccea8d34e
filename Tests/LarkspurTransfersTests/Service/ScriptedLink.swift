import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTransferServer
import LarkspurTransfers
import Synchronization
import TestKit
import Testing

/// A list to which threads add, and for which one thread waits.
final class Happenings<Element: Sendable>: Sendable {
  struct Missing: Error {}

  private let list = Mutex<[Element]>([])
  private let wakeUp = WakeUp()

  var all: [Element] { list.withLock { $0 } }

  func add(_ element: Element) {
    list.withLock { $0.append(element) }
    wakeUp.signal()
  }

  /// Waits until the list fulfils a condition. A test whose condition never comes fails after a minute.
  @discardableResult
  func wait(until condition: ([Element]) -> Bool) throws -> [Element] {
    let end = LinuxKernel.shared.now().advanced(by: .seconds(60))
    while true {
      let all = all
      if condition(all) { return all }
      guard LinuxKernel.shared.now() < end else { throw Missing() }
      wakeUp.wait(until: end)
    }
  }

  @discardableResult
  func wait(for count: Int) throws -> [Element] { try wait { $0.count >= count } }
}

/// A runner that does nothing: a test makes the notices, and reads the commands.
final class ScriptedLink: TransferLink {
  let session: TransferSession
  let records: [TransferRecord]
  let commands = Happenings<TransferCommand>()
  private let ended: Happenings<String>
  private struct State {
    var notify: (@Sendable (TransferNotice) -> Void)?
    var before: [TransferNotice] = []
  }

  private let state = Mutex(State())
  /// The functions of `flush` and `close`, which the test calls, unless `isPrompt`.
  let completions = Happenings<@Sendable () -> Void>()
  private let isPrompt: Bool

  init(_ session: TransferSession, _ records: [TransferRecord], isPrompt: Bool, ended: Happenings<String>) {
    self.isPrompt = isPrompt
    self.session = session
    self.records = records
    self.ended = ended
  }

  deinit { ended.add(session.directory) }

  func send(_ command: TransferCommand) { commands.add(command) }

  func start(_ notify: @escaping @Sendable (TransferNotice) -> Void) {
    while true {
      // Notices that come meanwhile keep their order.
      let before = state.withLock { state in
        if state.before.isEmpty { state.notify = notify }
        defer { state.before = [] }
        return state.before
      }
      if before.isEmpty { return }
      for notice in before { notify(notice) }
    }
  }

  func flush(_ completion: @escaping @Sendable (Bool) -> Void) { complete { completion(true) } }
  func close(_ completion: @escaping @Sendable () -> Void) { complete(completion) }

  private func complete(_ completion: @escaping @Sendable () -> Void) {
    if isPrompt { completion() } else { completions.add(completion) }
  }

  func report(_ notice: TransferNotice) {
    let notify = state.withLock { state in
      if state.notify == nil { state.before.append(notice) }
      return state.notify
    }
    notify?(notice)
  }
}

/// A clock that a test moves.
final class ManualClock: TransferClock {
  private struct State {
    var now = Deadline(nanoseconds: 1_000)
    var waiting: WakeUp?
  }

  private let state = Mutex(State())
  /// The deadlines of all waits so far.
  let waits = Happenings<Deadline>()

  func now() -> Deadline { state.withLock { $0.now } }

  func wait(for wakeUp: WakeUp, until deadline: Deadline) {
    let isDue = state.withLock { state in
      state.waiting = wakeUp
      return deadline <= state.now
    }
    waits.add(deadline)
    if !isDue { wakeUp.wait() }
  }

  func advance(by duration: Duration) {
    let waiting = state.withLock { state in
      state.now = state.now.advanced(by: duration)
      return state.waiting
    }
    waiting?.signal()
  }
}

/// A transfer server with scripted runners, in a temporary directory.
final class TestService: @unchecked Sendable {
  private struct Made {
    weak var link: ScriptedLink?
  }

  let url = FileManager.default.temporaryDirectory.appending(path: "lk-\(UUID().uuidString.prefix(8))")
  let clock = ManualClock()
  let lines = LogLines()
  /// The directories of the runners that have ended.
  let ended = Happenings<String>()
  let launched = Happenings<TransferSession>()
  /// The reasons for which servers have ended.
  let ends = Happenings<TransferServer.Exit>()
  /// Gets a member when `run` returns.
  let stopped = Happenings<Bool>()
  private let links = Mutex<[Made]>([])
  private let script = Mutex(Script())
  private let running = Mutex<TransferServer?>(nil)

  struct Script {
    /// The tasks of each new runner.
    var records: [TransferRecord] = []
    /// The errors of the next calls of the factory.
    var errors: [TransferLinkError] = []
    /// Whether new runners call the functions of `flush` and `close` at once.
    var isPrompt = true
  }

  init(_ change: (inout TransferServer.Options) -> Void = { _ in }) throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    options.clock = clock
    options.log = { [lines] in lines.add($0) }
    options.launch = { [launched] in launched.add($0) }
    change(&options)
  }

  private var options = TransferServer.Options()

  deinit {
    running.withLock { $0 }?.stop()
    try? FileManager.default.removeItem(at: url)
  }

  /// The directory of the socket, with `url` as the directory for runtime files.
  var directory: String { url.path + "/larkspur-transfers" }
  var stateHome: String { url.path + "/state" }

  func session(_ name: String = "a") -> TransferSession {
    let directory = TransferLocation.directory(stateHome: stateHome, program: "app", session: name)
    return TransferSession(identifier: Fixture.session, directory: directory, settings: [1])
  }

  func plan(_ change: (inout Script) -> Void) { script.withLock { change(&$0) } }

  func server() throws(TransferServerError) -> TransferServer {
    try TransferServer(directory: directory, stateHome: stateHome, options: options) {
      [weak self] (session) throws(TransferLinkError) in
      guard let self else { throw .unavailable(reason: "the test is over") }
      return try make(session)
    }
  }

  private func make(_ session: TransferSession) throws(TransferLinkError) -> ScriptedLink {
    let (error, script) = script.withLock { script in
      (script.errors.isEmpty ? nil : script.errors.removeFirst(), script)
    }
    if let error { throw error }
    let link = ScriptedLink(session, script.records, isPrompt: script.isPrompt, ended: ended)
    links.withLock { $0.append(Made(link: link)) }
    return link
  }

  /// Starts the server on a thread of its own.
  func start(continuing unfinished: (@Sendable () -> [TransferSession])? = nil) throws {
    let server = try server()
    running.withLock { $0 = server }
    let (ends, stopped, lines) = (ends, stopped, lines)
    try SystemThread(name: "test-service") {
      do throws(TransferServerError) { ends.add(try server.run(continuing: unfinished)) } catch {
        lines.add("\(error)")
      }
      stopped.add(true)
    }.detach()
  }

  /// Makes the server end.
  func askToStop() { running.withLock { $0 }?.stop() }

  func stop() throws {
    askToStop()
    try stopped.wait(for: 1)
    running.withLock { $0 = nil }
  }

  /// The number of runners so far.
  var linkCount: Int { links.withLock { $0.count } }

  /// The runner that was made last, if it has not ended.
  var link: ScriptedLink? { links.withLock { $0.last?.link } }

  /// Calls a function with the latest runner of a session.
  func withLink(of session: TransferSession, _ body: (ScriptedLink) -> Void) {
    let link = links.withLock { $0.last { $0.link?.session.directory == session.directory }?.link }
    if let link { body(link) }
  }

  func client(_ name: String = "a") throws -> TransferClient {
    try TransferClient(session(name), directory: directory, timeout: .seconds(60))
  }

  /// Attaches to a session, and repeats while the service has not noticed that the last program is gone.
  func nextClient(_ name: String = "a") throws -> TransferClient {
    var result = Result { try client(name) }
    Wait.blocking(until: "the session is free") {
      guard case .failure(TransferLinkError.inUse) = result else { return true }
      result = Result { try client(name) }
      return false
    }
    return try result.get()
  }

  /// Connects as a program that speaks by itself.
  func socket() throws -> BlockingSocket {
    try BlockingSocket.connect(to: .unix(path: "\(directory)/\(TransferLocation.socket)"))
  }
}

extension TransferClient {
  /// Collects the notices.
  func collected() -> Happenings<TransferNotice> {
    let notices = Happenings<TransferNotice>()
    start { notices.add($0) }
    return notices
  }
}

extension Fixture {
  /// A plain record in a state.
  static func plain(_ state: TransferRecord.State, task: Int = 1, events: [TransferRecord.Event] = []) -> TransferRecord
  {
    var record = plain(task: task)
    record.state = state
    record.events = events
    return record
  }
}
