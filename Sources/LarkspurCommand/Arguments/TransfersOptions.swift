/// The options of `larkspur transfers`.
package struct TransfersOptions: Hashable, Sendable {
  package enum Action: String, CaseIterable, Hashable, Sendable {
    /// Runs the service.
    case run
    case list
    case pause
    case resume
    case cancel
    case log
    /// Moves the files of `larkspur get --background` to their places.
    case deliver

    var takesSession: Bool { [.pause, .resume, .cancel].contains(self) }
  }

  package var action: Action
  /// The identifier of a session, or its journal's directory.
  package var session = ""
  /// The tasks, or none for all.
  package var tasks: [Int] = []
  /// The time without work after which the service ends.
  package var idleTime = Duration.seconds(60)

  package init(_ action: Action) { self.action = action }

  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> TransfersOptions? {
    let options: [ArgumentReader.Option] = [
      .init(nil, "idle-time", takesValue: true), .init(nil, "foreground"), .init("h", "help"),
    ]
    var reader = ArgumentReader(arguments, options: options)
    var result: TransfersOptions?
    var idleTime: Duration?
    var isForeground = false
    while let argument = try reader.next() {
      switch argument {
      case .option("help", _): return nil
      case .option("foreground", _): isForeground = true
      case .option(_, let value):
        // No time at all would end the service before a program can reach it.
        guard let time = try GetOptions.timeout(value, of: "idle-time") else {
          throw UsageError("--idle-time wants more than 0 seconds")
        }
        idleTime = time
      case .operand(let word):
        guard result != nil else {
          guard let action = Action(rawValue: word) else {
            throw UsageError(
              "unknown action \(word)" + Suggestion.text(for: word, among: Action.allCases.map(\.rawValue)))
          }
          result = TransfersOptions(action)
          continue
        }
        try result?.take(word)
      }
    }
    guard var result else { throw UsageError("an action is missing: run, list, pause, resume, cancel, log or deliver") }
    guard !result.action.takesSession || !result.session.isEmpty else { throw UsageError("the session is missing") }
    guard result.action == .run || idleTime == nil && !isForeground else {
      throw UsageError("--idle-time and --foreground belong to run")
    }
    if let idleTime { result.idleTime = idleTime }
    return result
  }

  private mutating func take(_ word: String) throws(UsageError) {
    guard action.takesSession else { throw UsageError("\(action.rawValue) takes no operand: \(word)") }
    if session.isEmpty {
      guard !word.isEmpty else { throw UsageError("the session is empty") }
      session = word
      return
    }
    guard let task = Int(word), 1...Int(UInt32.max) ~= task else { throw UsageError("a task is a number, not \(word)") }
    tasks.append(task)
  }

  static let help = """
    larkspur transfers run [--idle-time S]
    larkspur transfers list
    larkspur transfers pause|resume|cancel SESSION [TASK ...]
    larkspur transfers log
    larkspur transfers deliver

    Shows and changes the transfers of this user's background sessions, which outlive their programs.

      run                   Be the service that carries them out, for all programs of this user. A program's first
                            background session starts it by itself; under systemd, the unit
                            larkspur-transfers.service does.
          --idle-time S     End after S seconds without programs and tasks (60).
          --foreground      Stay in the foreground, which is what run does without it.
      list                  Show all sessions and their tasks.
      pause, resume, cancel Change the tasks of SESSION, an identifier or the directory that list shows: those of
                            the numbers TASK, or all. The service is started if it does not run.
      log                   Show what the service has logged. Fields of requests are never logged.
      deliver               Move the files of `larkspur get --background` to their places, and wait for those that are
                            not complete. The service starts this by itself when all are complete.

      -h, --help

    LARKSPUR_TRANSFER_SERVICE is the program of the service; if it is empty, sessions carry out their own tasks.

    """
}
