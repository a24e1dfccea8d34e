/// A program's connection to the runner of one background session: to an object of the same process, or to the
/// service.
///
/// Can be used from any thread. The link ends with its last reference. If the runner is the service, the session's
/// tasks then continue without the program.
public protocol TransferLink: AnyObject, Sendable {
  /// The tasks at the time at which the link was made. Changes after that come as notices.
  var records: [TransferRecord] { get }
  /// Passes a command on. Does not block.
  func send(_ command: TransferCommand)
  /// Passes all later notices, one after another, to a function that does not block. Called once. Notices that came
  /// before are passed first.
  func start(_ notify: @escaping @Sendable (TransferNotice) -> Void)
  /// Calls a function when all commands so far have been carried out and are on the disk, and their notices have been
  /// passed on. Calls it with `false` if the runner is gone before that.
  func flush(_ completion: @escaping @Sendable (_ isConfirmed: Bool) -> Void)
  /// Releases the session after all commands so far, and calls a function when another link can use the session. No
  /// other function may be called afterwards.
  func close(_ completion: @escaping @Sendable () -> Void)
}

/// A background session, as its runner is asked for it.
public struct TransferSession: Codable, Hashable, Sendable {
  /// The identifier, at most `TransferRecord.sessionBytesMax` bytes of UTF-8.
  public var identifier: String
  /// The directory of the journal: see `TransferLocation`.
  public var directory: String
  /// The settings of the session's configuration, in a form that only `Larkspur` knows. They contain secrets.
  public var settings: [UInt8]
  /// The program, by its absolute path, and its arguments, which the service starts when all tasks have ended while no
  /// program is attached. Empty if the session sends no launch events.
  public var launchCommand: [String]

  public init(identifier: String, directory: String, settings: [UInt8], launchCommand: [String] = []) {
    self.identifier = identifier
    self.directory = directory
    self.settings = settings
    self.launchCommand = launchCommand
  }
}

/// The reason for which a background session has no runner.
public enum TransferLinkError: Error, Codable, Hashable, Sendable {
  /// Another process, or another session of this process, has the session's tasks.
  case inUse
  /// The journal or the service cannot be used. `reason` is a human-readable sentence.
  case unavailable(reason: String)
}

extension TransferLinkError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .inUse: "another process or session carries out the transfers of this session"
    case .unavailable(let reason): reason
    }
  }
}

/// A command from a program to the runner of a background session.
///
/// Commands are carried out in their order, without waiting for answers. A command for a task that does not exist or
/// has ended has no effect: the event of its end is on its way.
public enum TransferCommand: Codable, Hashable, Sendable {
  /// Creates a task that has been resumed. The record has the task's identifier, which no earlier task has had.
  case create(TransferRecord)
  case resume(task: Int)
  case suspend(task: Int)
  /// Ends the task with `URLError.cancelled`.
  ///
  /// - Parameter isKeepingContent: Whether the received bytes stay, so that another task can continue from them. The
  ///   program takes the file before it acknowledges the end.
  case cancel(task: Int, isKeepingContent: Bool)
  /// Replaces what the program can change at any time.
  case update(task: Int, TransferProperties)
  /// The program has been given the first `count` events of the task's record. When a task that has ended has no more
  /// events, the task and its file are removed.
  case acknowledge(task: Int, count: Int)
  /// Answers a question. An answer to a question that is not open has no effect.
  case answer(question: UInt64, TransferAnswer)
}

/// The properties of a task that the program can change at any time.
public struct TransferProperties: Codable, Hashable, Sendable {
  public var description: String?
  /// The priority, from 0 to 1.
  public var priority: Double
  /// -1 stands for an unknown number.
  public var clientExpectsToSend: Int64
  public var clientExpectsToReceive: Int64

  public init(
    description: String?, priority: Double, clientExpectsToSend: Int64 = -1, clientExpectsToReceive: Int64 = -1
  ) {
    self.description = description
    self.priority = priority
    self.clientExpectsToSend = clientExpectsToSend
    self.clientExpectsToReceive = clientExpectsToReceive
  }
}

extension TransferSession {
  /// Maximum size of the settings in bytes.
  public static let settingsBytesMax = 1 << 20
  /// Maximum number of tasks. A journal refuses more than `TransferJournal.tasksMax`, and reports each refusal to the
  /// program.
  package static let tasksMax = 2 * TransferJournal.tasksMax
  /// Maximum number of words of a launch command.
  private static let launchWordsMax = 256
  /// Maximum size of a launch command in bytes.
  private static let launchBytesMax = 64 << 10
  /// Maximum size of a journal's path in bytes (`PATH_MAX` of the kernel).
  private static let directoryBytesMax = 4096

  /// The part that breaks a rule, or `nil` if the session is valid.
  var invalidPart: String? {
    if !TransferRecord.isSession(identifier) { return TransferRecord.sessionPart }
    if !Self.isDirectory(directory) { return "the directory" }
    if settings.count > Self.settingsBytesMax { return "the size of the settings" }
    if !Self.isLaunchCommand(launchCommand) { return "the launch command" }
    return nil
  }

  /// Whether the words can start a program: absent, or an absolute path and arguments.
  private static func isLaunchCommand(_ words: [String]) -> Bool {
    words.count <= launchWordsMax && words.reduce(0) { $0 + $1.utf8.count } <= launchBytesMax
      && words.first?.hasPrefix("/") != false && words.allSatisfy { !$0.utf8.contains(0) }
  }

  /// Whether the text is an absolute path without `..`.
  static func isDirectory(_ path: String) -> Bool {
    path.utf8.first == UInt8(ascii: "/") && path.utf8.count <= directoryBytesMax && !path.utf8.contains(0)
      && !path.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
  }
}

extension TransferCommand {
  var invalidPart: String? {
    switch self {
    case .create(let record): record.invalidPart
    case .resume(let task), .suspend(let task), .cancel(let task, _): TransferMessage.taskPart(task)
    case .update(let task, let properties): TransferMessage.taskPart(task) ?? properties.invalidPart
    case .acknowledge(let task, let count):
      TransferMessage.taskPart(task) ?? (0...TransferRecord.eventsMax ~= count ? nil : "the number of events")
    case .answer(_, let answer): answer.invalidPart
    }
  }
}

extension TransferProperties {
  var invalidPart: String? {
    if !(0...1 ~= priority) { return "the priority" }
    if (description?.utf8.count ?? 0) > TransferRecord.descriptionBytesMax { return "the description" }
    return clientExpectsToSend >= -1 && clientExpectsToReceive >= -1 ? nil : "the counts"
  }
}
