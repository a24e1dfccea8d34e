import LarkspurBytes
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// The reason for which a transfer server does not run.
public enum TransferServerError: Error, Hashable, Sendable {
  /// The user has a service that runs.
  case alreadyRunning
  /// The directory or the socket cannot be used.
  case unavailable(Errno)
}

extension TransferServerError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .alreadyRunning: "a transfer service of this user runs already"
    case .unavailable(let error): "the transfer service's socket cannot be used: \(error)"
    }
  }
}

/// The transfer service of one user: listens on a Unix socket, and carries out the background sessions of all programs of
/// the user.
///
/// A connection has two threads, one that reads and one that writes. A session has one runner, from a factory. When a
/// program goes away, its session's runner stays while there are tasks to carry out. The server ends when it has had
/// no program and no such session for a time. While nothing happens no thread wakes up.
public final class TransferServer: Sendable {
  public struct Options: Sendable {
    /// The time without programs and tasks after which the server ends.
    public var idleTime = Duration.seconds(60)
    /// The time in which a connection has to say what it is for, and in which a list has to be taken.
    public var timeout = Duration.seconds(10)
    public var clock: any TransferClock = LinuxKernel.shared
    /// Decides whether a process of a user may connect. By default only the server's own user may.
    public var isAllowed: @Sendable (_ user: UInt32) -> Bool = { $0 == ProcessUser.effective }
    /// Starts a session's program for its events. Called on any thread.
    public var launch: @Sendable (TransferSession) -> Void = { _ in }
    /// Gets messages as text, which quotes nothing of a request.
    public var log: @Sendable (String) -> Void = { _ in }

    public init() {}
  }

  public typealias Factory = @Sendable (TransferSession) throws(TransferLinkError) -> any TransferLink

  /// Maximum number of connections at a time.
  static let connectionsMax = 256
  /// Maximum number of connections that list the tasks at a time: each has a copy of them.
  static let listingsMax = 8
  /// The number of commands after which the runner has to catch up before more are read. What is read and not carried
  /// out is in memory.
  static let commandsMax = 64
  /// Maximum number of launches of a program that takes no events and answers no questions.
  static let launchesMax = 3

  private struct Entry {
    var session: ServedSession
    /// The number of connections that use the session.
    var users = 0
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var sockets: [Int: BlockingSocket] = [:]
    var lastSocket = 0
    /// How often the program of a session has been launched since it last did anything, by the session's directory.
    var launches: [String: Int] = [:]
    /// The number of connections that list the tasks.
    var listings = 0
    var idleSince: Deadline
    /// The reason to end, before the server is idle.
    var end: Exit?
    /// Whether the search for the sessions of an earlier service, or their opening, is unfinished.
    var isRestoring = false
    var isOver = false
  }

  private let stateHome: String
  private let options: Options
  private let factory: Factory
  private let directory: Directory
  /// The lock of the directory, or `nil` after the end: threads may have the server longer.
  private let lock: Mutex<FileLock?>
  private let listener: BlockingListener
  private let watch: RemovalWatch?
  private let wakeUp = WakeUp()
  private let state: Mutex<State>
  private var log: @Sendable (String) -> Void { options.log }

  /// Listens. Replaces the socket of a server that was killed.
  ///
  /// If the socket's name goes away (the directory for runtime files is removed when the user logs out, or by hand), no
  /// program could reach the server, and its sessions' journals would be locked: the server ends.
  ///
  /// - Parameters:
  ///   - path: The directory of the socket: see `TransferLocation.service`. It is created with mode 0700.
  ///   - stateHome: The directory for state: see `TransferLocation.stateHome`. The server writes to directories of sessions
  ///     below it, and to no other that a message names.
  ///   - factory: Makes the runner of a session. Called on any thread, which it may block.
  public init(
    directory path: String, stateHome: String, options: Options = Options(), factory: @escaping Factory
  ) throws(TransferServerError) {
    do throws(Errno) {
      directory = try Directory.ofOwner(at: path)
      guard let lock = try directory.lock(TransferLocation.lock) else { throw .addressInUse }
      self.lock = Mutex(lock)
      do throws(Errno) { try directory.remove(TransferLocation.socket) } catch .noSuchFile {}
      // From here on only this server uses the name.
      watch = Self.watch(path, options.log)
      listener = try BlockingListener(address: .unix(path: "\(path)/\(TransferLocation.socket)"))
    } catch .addressInUse {
      throw .alreadyRunning
    } catch {
      throw .unavailable(error)
    }
    self.stateHome = stateHome
    self.options = options
    self.factory = factory
    state = Mutex(State(idleSince: options.clock.now()))
  }

  private static func watch(_ path: String, _ log: (String) -> Void) -> RemovalWatch? {
    do throws(Errno) {
      return try RemovalWatch(directory: path)
    } catch {
      log("the service will not notice the removal of its socket: \(error)")
      return nil
    }
  }

  // MARK: - Running

  /// The reason for which a server has ended.
  public enum Exit: Hashable, Sendable {
    /// The server had been idle for its time.
    case idle
    /// `stop` was called.
    case stopped
    /// The socket was removed. Another server can continue the sessions.
    case removed
  }

  /// Accepts programs until the server has been idle for its time, or `stop` is called. Blocks the thread.
  ///
  /// - Parameter unfinished: Returns the sessions that an earlier service has left with tasks, or with events whose
  ///   program should be launched. Called once, on a dedicated thread: programs are served while the journals are read.
  public func run(
    continuing unfinished: (@Sendable () -> [TransferSession])? = nil
  ) throws(TransferServerError) -> Exit {
    state.withLock { $0.isRestoring = unfinished != nil }
    do throws(Errno) {
      try SystemThread(name: "transfers-accept") { [self] in accept() }.detach()
      if let watch {
        try SystemThread(name: "transfers-watch") { [weak self] in
          guard (try? watch.wait(for: TransferLocation.socket)) != nil else { return }
          self?.stop(.removed)
        }.detach()
      }
      if let unfinished {
        try SystemThread(name: "transfers-start") { [self] in restore(unfinished()) }.detach()
      }
    } catch {
      end()
      throw .unavailable(error)
    }
    while let deadline = sweep() { options.clock.wait(for: wakeUp, until: deadline) }
    end()
    return state.withLock { $0.end ?? .idle }
  }

  /// Ends the server. May be called on any thread; `run` returns soon after.
  public func stop() { stop(.stopped) }

  private func stop(_ end: Exit) {
    state.withLock { state in
      // The end of an idle server removes the socket, too.
      if !state.isOver, state.end == nil { state.end = end }
    }
    wakeUp.signal()
  }

  /// Forgets the sessions that nothing uses.
  ///
  /// - Returns: The time at which to look again, or `nil` if the server ends now.
  private func sweep() -> Deadline? {
    let now = options.clock.now()
    return state.withLock { state in
      for (directory, entry) in state.entries where entry.users == 0 && entry.session.read(\.isAtRest) {
        state.entries[directory] = nil
        if state.entries.isEmpty { state.idleSince = now }
      }
      if state.end == nil {
        guard state.entries.isEmpty, !state.isRestoring else { return .never }
        let deadline = state.idleSince.advanced(by: options.idleTime)
        if now < deadline { return deadline }
      }
      state.isOver = true
      return nil
    }
  }

  private func end() {
    // The name goes first: a program that finds no socket starts another service, which waits for the lock.
    try? directory.remove(TransferLocation.socket)
    listener.shutDown()
    let (sockets, sessions) = state.withLock { state in
      state.isOver = true
      defer { (state.sockets, state.entries) = ([:], [:]) }
      return (state.sockets.values.map(\.self), state.entries.values.map(\.session))
    }
    let deadline = LinuxKernel.shared.now().advanced(by: .seconds(5))
    for session in sessions { session.end() }
    for session in sessions { session.waitForEnd(until: deadline) }
    for socket in sockets { socket.shutDown() }
    lock.withLock { $0 = nil }
  }

  /// Continues the sessions of an earlier service.
  private func restore(_ sessions: [TransferSession]) {
    for session in sessions {
      guard let served = enter(session) else { break }
      switch served.enter(.restore) {
      case .admitted(let visit): served.leave(visit)
      case .refused(let error): log("session \"\(session.identifier)\" is not continued: \(error)")
      case .over: break
      }
      leave(session.directory)
    }
    state.withLock { state in
      state.isRestoring = false
      if state.entries.isEmpty { state.idleSince = options.clock.now() }
    }
    wakeUp.signal()
  }

  // MARK: - Sessions

  /// Returns the session of a journal. Its user calls `leave` at the end.
  ///
  /// - Returns: `nil` if the server ends.
  private func enter(_ session: TransferSession) -> ServedSession? {
    state.withLock { state in
      guard !state.isOver else { return nil }
      var entry =
        state.entries[session.directory]
        ?? Entry(session: ServedSession(session, service))
      entry.users += 1
      state.entries[session.directory] = entry
      return entry.session
    }
  }

  private func leave(_ directory: String) {
    state.withLock { $0.entries[directory]?.users -= 1 }
    wakeUp.signal()
  }

  /// The functions for the sessions, which the server outlives.
  private var service: ServedSession.Service {
    ServedSession.Service(
      factory: factory, launch: { [weak self] in self?.launch($0) }, rests: { [wakeUp] in wakeUp.signal() }, log: log)
  }

  private func launch(_ session: TransferSession) {
    let isStarted = state.withLock { state in
      let count = state.launches[session.directory, default: 0]
      state.launches[session.directory] = min(count + 1, Self.launchesMax)
      return count < Self.launchesMax
    }
    guard isStarted else {
      return log("the program of session \"\(session.identifier)\" is not started again: it takes no events")
    }
    log("starting the program of session \"\(session.identifier)\" for its events")
    options.launch(session)
  }

  // MARK: - Connections

  private func accept() {
    while true {
      let socket: BlockingSocket
      do throws(Errno) {
        socket = try listener.accept()
      } catch {
        if state.withLock({ $0.isOver }) { return }
        log("a connection was not accepted: \(error)")
        guard error.isShortage else { return stop() }
        // Descriptors or memory may be there again soon.
        WakeUp().wait(until: LinuxKernel.shared.now().advanced(by: .milliseconds(100)))
        continue
      }
      do throws(Errno) { try admit(socket) } catch { log("a connection was not accepted: \(error)") }
    }
  }

  private func admit(_ socket: BlockingSocket) throws(Errno) {
    let user = try socket.peerUser()
    guard options.isAllowed(user) else { return log("a process of user \(user) was refused") }
    let (number, isOver) = state.withLock { state -> (Int?, Bool) in
      guard !state.isOver, state.sockets.count < Self.connectionsMax else { return (nil, state.isOver) }
      state.lastSocket += 1
      state.sockets[state.lastSocket] = socket
      return (state.lastSocket, false)
    }
    // Without an answer the program starts another service.
    if isOver { return }
    guard let number else {
      log("a connection was refused: there are \(Self.connectionsMax)")
      return socket.refuse(.unavailable(reason: "the transfer service has \(Self.connectionsMax) connections"))
    }
    do throws(Errno) {
      try SystemThread(name: "transfers-read") { [self] in
        serve(socket)
        socket.shutDown()
        state.withLock { _ = $0.sockets.removeValue(forKey: number) }
      }.detach()
    } catch {
      state.withLock { _ = $0.sockets.removeValue(forKey: number) }
      throw error
    }
  }

  private func serve(_ socket: BlockingSocket) {
    var reader = TransferReader(socket, until: LinuxKernel.shared.now().advanced(by: options.timeout))
    do throws(TransferChannelError) {
      let first = try reader.next()
      reader.deadline = .never
      switch first {
      case .open(let session): try serve(session, socket, &reader)
      case .administer(let request): try administer(request, socket)
      case nil: break
      default: throw .message(.damaged("the first message asks for nothing"))
      }
    } catch {
      log("a connection has ended: \(error)")
      if case .message(let reason) = error { socket.refuse(.unavailable(reason: "\(reason)")) }
    }
  }

  /// Returns the error for a path that is no session's directory: its permissions and files would be changed.
  private func refusal(of directory: String) -> TransferLinkError? {
    guard !TransferLocation.isDirectory(directory, stateHome: stateHome) else { return nil }
    return .unavailable(reason: "\(directory) is not the directory of a session below \(stateHome)")
  }

  private func serve(
    _ session: TransferSession, _ socket: BlockingSocket, _ reader: inout TransferReader
  ) throws(TransferChannelError) {
    if let error = refusal(of: session.directory) { return socket.refuse(error) }
    guard let served = enter(session) else { return }
    defer { leave(session.directory) }
    guard case .admitted(let visit) = served.enter(.attach(session), socket) else { return }
    defer { served.leave(visit) }
    var waiting = 0
    while let message = try reader.next() {
      waiting += 1
      if waiting > Self.commandsMax {
        waiting = 0
        served.catchUp()
      }
      switch message {
      case .command(let command):
        state.withLock { _ = $0.launches.removeValue(forKey: session.directory) }
        guard served.perform(command, of: visit) else {
          throw .message(.damaged("a session has at most \(TransferSession.tasksMax) tasks"))
        }
      case .flush(let number): served.flush(number, of: visit)
      default: throw .message(.damaged("a program sends commands"))
      }
    }
  }

  // MARK: - Administration

  private func administer(_ request: TransferAdministration, _ socket: BlockingSocket) throws(TransferChannelError) {
    do throws(TransferValueError) {
      switch request {
      case .list: try list(to: socket)
      case .change(let change, let directory, let tasks):
        // Without an answer the program starts another service.
        guard let answer = try self.change(change, directory, tasks) else { return }
        let deadline = LinuxKernel.shared.now().advanced(by: options.timeout)
        _ = send([try answer.encoded()], to: socket, until: deadline)
      }
    } catch {
      throw .message(error)
    }
  }

  /// - Returns: `false` if the program does not take the frames in time.
  private func send(_ frames: [[UInt8]], to socket: BlockingSocket, until deadline: Deadline) -> Bool {
    frames.allSatisfy { (try? socket.send($0.span, until: deadline)) != nil }
  }

  private func list(to socket: BlockingSocket) throws(TransferValueError) {
    let listed = state.withLock { state -> [ServedSession]? in
      guard state.listings < Self.listingsMax else { return nil }
      state.listings += 1
      return state.entries.sorted { $0.key < $1.key }.map(\.value.session)
    }
    guard let sessions = listed else {
      return socket.refuse(.unavailable(reason: "\(Self.listingsMax) programs list the tasks already"))
    }
    defer { state.withLock { $0.listings -= 1 } }
    let deadline = LinuxKernel.shared.now().advanced(by: options.timeout)
    for session in sessions {
      let (isOpen, word, records) = session.read { machine in
        let word = TransferServedSession(
          identifier: machine.session.identifier, directory: machine.session.directory, isAttached: machine.isAttached)
        return (machine.isOpen, word, machine.records)
      }
      guard isOpen else { continue }
      let frames = [try TransferMessage.serves(word).encoded()] + (try TransferMessage.frames(of: records))
      guard send(frames, to: socket, until: deadline) else { return }
    }
    _ = send([try TransferMessage.done(count: sessions.count).encoded()], to: socket, until: deadline)
  }

  private func change(
    _ change: TransferAdministration.Change, _ directory: String, _ tasks: TransferAdministration.Tasks
  ) throws(TransferValueError) -> TransferMessage? {
    if let error = refusal(of: directory) { return .refused(error) }
    let known = state.withLock { $0.entries[directory]?.session.read(\.session) }
    let session: TransferSession
    do throws(TransferJournalError) {
      var found = known
      if found == nil { found = try TransferSessionFile.read(in: directory) }
      guard let found else {
        return .refused(.unavailable(reason: "the directory \(directory) has no session"))
      }
      session = found
    } catch {
      return .refused(.unavailable(reason: "\(error)"))
    }
    guard let served = enter(session) else { return nil }
    defer { leave(directory) }
    switch served.enter(.open) {
    case .admitted(let visit):
      defer { served.leave(visit) }
      return .done(count: served.administer(change, tasks))
    case .refused(let error): return .refused(error)
    case .over: return nil
    }
  }
}

/// The time by which a transfer server ends.
public protocol TransferClock: Sendable {
  func now() -> Deadline
  /// Blocks until the wake-up is signalled or the deadline has passed.
  func wait(for wakeUp: WakeUp, until deadline: Deadline)
}

extension LinuxKernel: TransferClock {
  public func wait(for wakeUp: WakeUp, until deadline: Deadline) { wakeUp.wait(until: deadline) }
}
