import LarkspurBytes
import LarkspurIO

/// Finds the program of the transfer service, starts it, and connects to it.
public struct ServiceLauncher: Sendable {
  /// The variable with the path of the service's program. An empty value stands for no service.
  public static let variable = "LARKSPUR_TRANSFER_SERVICE"
  /// The variable with the identifier of the session for whose events a program is launched.
  public static let sessionVariable = "LARKSPUR_BACKGROUND_SESSION"
  static let programName = "larkspur"
  static let arguments = ["transfers", "run"]
  /// The variables that the service gets from the program that starts it. The service serves other programs as well, to
  /// which the secrets of one program's environment do not belong.
  static let keptVariables: Set<String> = [
    "DBUS_SESSION_BUS_ADDRESS", "HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "USER",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
  ]

  /// Starts a program, which runs on after this process.
  ///
  /// - Returns: A function that waits for the program's end until a time, and returns `false` if it runs on.
  typealias Start = @Sendable (_ path: String, _ arguments: [String]) throws(Errno) -> @Sendable (Deadline) -> Bool

  private let environment: @Sendable (String) -> String?
  /// The directory of the running program.
  private let ownDirectory: String?
  private let start: Start

  public init() {
    let own = (try? FilePaths.resolved("/proc/self/exe")) ?? ""
    self.init(
      environment: EnvironmentVariable.value(of:),
      ownDirectory: own.lastIndex(of: "/").map { String(own[..<$0]) }
    ) { (path, arguments) throws(Errno) in
      let life = try DetachedProcess.startWatched(path, arguments, keeping: Self.keptVariables)
      return { life.waitForEnd(until: $0) }
    }
  }

  /// - Parameter environment: Returns the value of an environment variable.
  init(
    environment: @escaping @Sendable (String) -> String?, ownDirectory: String?, start: @escaping Start
  ) {
    self.environment = environment
    self.ownDirectory = ownDirectory
    self.start = start
  }

  /// The path of the service's program: by `LARKSPUR_TRANSFER_SERVICE`, or a file `larkspur` beside the running program,
  /// or one in `PATH`. `nil` if there is none.
  public var program: String? {
    if let path = environment(Self.variable) { return path.isEmpty ? nil : path }
    if let ownDirectory {
      let beside = "\(ownDirectory)/\(Self.programName)"
      // Where every user may write, another user may have put the file.
      if Self.isProgram(beside), FilePaths.isGuarded(ownDirectory), FilePaths.isGuarded(beside) { return beside }
    }
    return path(of: Self.programName)
  }

  /// Returns the absolute path of a program that a word names: a path, which may begin in the current directory, or a file
  /// in `PATH`. Relative entries of `PATH` are passed over.
  public func path(of word: String) -> String? {
    if word.utf8.first == UInt8(ascii: "/") { return word }
    if word.utf8.contains(UInt8(ascii: "/")) { return (try? FilePaths.resolved(".")).map { "\($0)/\(word)" } }
    let entries = (environment("PATH") ?? "").split(separator: ":").filter { $0.utf8.first == UInt8(ascii: "/") }
    return entries.map { "\($0)/\(word)" }.first(where: Self.isProgram)
  }

  private static func isProgram(_ path: String) -> Bool {
    guard case .regularFile(let permissions)? = try? FilePaths.kind(of: path) else { return false }
    return permissions & 0o111 != 0
  }

  /// Connects a session to the user's transfer service, and starts the service if it does not run. Two programs that do
  /// so at once end with one service: the second one to start finds the lock held, and ends.
  ///
  /// Blocks until the session is open, and at most for `timeout`.
  ///
  /// - Returns: `nil` if there is no service program, or `LARKSPUR_TRANSFER_SERVICE` is empty: the session's tasks are
  ///   carried out in the process then.
  /// - Throws: `inUse` and `unavailable`. `unavailable` says why.
  public func open(
    _ session: TransferSession, timeout: Duration = .seconds(5)
  ) throws(TransferLinkError) -> TransferClient? {
    if environment(Self.variable)?.isEmpty == true { return nil }
    guard let directory = TransferLocation.service(environment: environment) else { return nil }
    let deadline = LinuxKernel.shared.now().advanced(by: timeout)
    // A service that runs already is found without its program.
    switch Self.attempt(session, directory, deadline) {
    case .success(let client): return client
    case .failure(.refused(let error)): throw error
    case .failure: break
    }
    guard let program else { return nil }
    return try start(program, in: directory, until: deadline) { Self.attempt(session, directory, deadline) }
  }

  /// Changes tasks of the session with the journal in `directory`. Starts the service if it does not run.
  ///
  /// - Returns: The number of tasks that were changed.
  /// - Throws: `unavailable`, also if a service that runs does not answer in time.
  public func administer(
    _ change: TransferAdministration.Change, directory: String, tasks: TransferAdministration.Tasks,
    timeout: Duration = .seconds(5)
  ) throws(TransferLinkError) -> Int {
    guard let path = TransferLocation.service(environment: environment) else {
      throw .unavailable(reason: "the transfer service has no place for its socket")
    }
    let administrator = TransferAdministrator(directory: path)
    if let count = try administrator.change(change, directory: directory, tasks: tasks) { return count }
    guard let program else { throw .unavailable(reason: "no transfer service runs, and there is no program for it") }
    return try start(program, in: path, until: LinuxKernel.shared.now().advanced(by: timeout)) {
      do throws(TransferLinkError) {
        let count = try administrator.change(change, directory: directory, tasks: tasks)
        return count.map { .success($0) } ?? .failure(.notRunning)
      } catch {
        return .failure(.refused(error))
      }
    }
  }

  private static func attempt(
    _ session: TransferSession, _ directory: String, _ deadline: Deadline
  ) -> Result<TransferClient, TransferClient.Failure> {
    Result { () throws(TransferClient.Failure) in try TransferClient(session, in: directory, until: deadline) }
  }

  private static let firstPause = Duration.milliseconds(2)
  private static let longestPause = Duration.milliseconds(32)

  /// Starts the service, and calls `attempt` until it succeeds or the service refuses.
  ///
  /// A service ends at once if another service holds the lock, which is then about to listen or to end. Otherwise the
  /// program file cannot work as a service. The second start is for a service that lost the lock to a program that
  /// checked it.
  private func start<Value>(
    _ program: String, in directory: String, until deadline: Deadline,
    _ attempt: () -> Result<Value, TransferClient.Failure>
  ) throws(TransferLinkError) -> Value {
    var failures = 0
    while LinuxKernel.shared.now() < deadline {
      let hasEnded: @Sendable (Deadline) -> Bool
      do throws(Errno) {
        hasEnded = try start(program, Self.arguments)
      } catch {
        throw .unavailable(reason: "the transfer service \(program) cannot be started: \(error)")
      }
      if let value = try poll(until: deadline, attempt, isOver: hasEnded) { return value }
      if Self.isLocked(directory) {
        let wakeUp = WakeUp()
        let value = try poll(until: deadline, attempt) { end in
          wakeUp.wait(until: end)
          return !Self.isLocked(directory)
        }
        if let value { return value }
        failures = 0
      } else {
        failures += 1
        guard failures < 2 || LinuxKernel.shared.now() >= deadline else {
          throw .unavailable(reason: "the transfer service \(program) ends at once")
        }
      }
    }
    throw .unavailable(reason: "the transfer service \(program) was started, and does not listen")
  }

  /// Calls `attempt` until it succeeds, `isOver` is true, or the deadline has passed. The last call follows `isOver`.
  ///
  /// - Parameter isOver: Waits until there is no use in another attempt, and at most until the time that it gets.
  /// - Returns: `nil` if no attempt has succeeded.
  /// - Throws: The service's refusal.
  private func poll<Value>(
    until deadline: Deadline, _ attempt: () -> Result<Value, TransferClient.Failure>, isOver: (Deadline) -> Bool
  ) throws(TransferLinkError) -> Value? {
    var pause = Self.firstPause
    while true {
      let now = LinuxKernel.shared.now()
      let isLast = isOver(min(now.advanced(by: pause), deadline)) || now >= deadline
      switch attempt() {
      case .success(let value): return value
      case .failure(.refused(let error)): throw error
      case .failure: if isLast { return nil }
      }
      pause = min(pause * 2, Self.longestPause)
    }
  }

  /// Whether a service has the lock of the directory: it runs, is about to listen, or is about to end.
  private static func isLocked(_ path: String) -> Bool {
    guard let directory = try? Directory(path: path, isCreating: false) else { return false }
    do throws(Errno) { return try directory.lock(TransferLocation.lock) == nil } catch { return false }
  }

  /// Starts the program of a session for its events, with the session's identifier in `sessionVariable`.
  public func launch(_ session: TransferSession) throws(TransferLinkError) {
    guard let path = session.launchCommand.first else { return }
    do throws(Errno) {
      try DetachedProcess.start(
        path, Array(session.launchCommand.dropFirst()),
        environment: [Self.sessionVariable: session.identifier])
    } catch {
      throw .unavailable(reason: "\(path) cannot be started: \(error)")
    }
  }
}
