/// The options of `larkspur transfers`.
package struct TransfersOptions: OptionList, Hashable, Sendable {
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

  package private(set) var action = Action.list
  /// The identifier of a session, or its journal's directory.
  package var session = ""
  /// The tasks. Empty for all.
  package var tasks: [Int] = []
  /// The time without work after which the service ends.
  package var idleTime = Duration.seconds(60)
  private var hasAction = false
  /// Whether an option of `run` is given.
  private var isForRun = false

  init() {}

  package init(_ action: Action) { (self.action, hasAction) = (action, true) }

  static let options: [CommandOption<TransfersOptions>] = [
    .init(nil, "idle-time", "S", "run: End after S seconds without programs and tasks (60).") {
      options, value throws(UsageError) in
      // No time at all would end the service before a program can reach it.
      guard let time = try GetOptions.timeout(value, of: "idle-time") else {
        throw UsageError("--idle-time wants more than 0 seconds")
      }
      (options.idleTime, options.isForRun) = (time, true)
    },
    .flag(nil, "foreground", "run: Stay in the foreground, which is what run does without it.", \.isForRun),
  ]

  mutating func take(_ word: String) throws(UsageError) {
    guard hasAction else {
      guard let action = Action(rawValue: word) else {
        throw UsageError("unknown action \(word)" + Suggestion.text(for: word, among: Action.allCases.map(\.rawValue)))
      }
      return (self.action, hasAction) = (action, true)
    }
    guard action.takesSession else { throw UsageError("\(action.rawValue) takes no operand: \(word)") }
    if session.isEmpty {
      guard !word.isEmpty else { throw UsageError("the session is empty") }
      session = word
      return
    }
    guard let task = Int(word), 1...Int(UInt32.max) ~= task else { throw UsageError("a task is a number, not \(word)") }
    tasks.append(task)
  }

  mutating func check() throws(UsageError) {
    guard hasAction else {
      throw UsageError("an action is missing: run, list, pause, resume, cancel, log or deliver")
    }
    guard !action.takesSession || !session.isEmpty else { throw UsageError("the session is missing") }
    guard action == .run || !isForRun else { throw UsageError("--idle-time and --foreground belong to run") }
    isForRun = false
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
      list                  Show all sessions and their tasks.
      pause, resume, cancel Change the tasks of SESSION, an identifier or the directory that list shows: those of
                            the numbers TASK, or all. The service is started if it does not run.
      log                   Show what the service has logged. Fields of requests are never logged.
      deliver               Move the files of `larkspur get --background` to their places, and wait for those that are
                            not complete. The service starts this by itself when all are complete.


    """ + optionsHelp + """

      LARKSPUR_TRANSFER_SERVICE is the program of the service; if it is empty, sessions carry out their own tasks.

      """
}
