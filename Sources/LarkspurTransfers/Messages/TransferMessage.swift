import LarkspurBytes

/// All that a program and the transfer service say to each other.
///
/// A program's first message is `open` or `administer`. The service answers with `refused`, which ends the connection,
/// or with any number of `records` and then `opened`. After that, commands go one way and notices the other.
///
/// In all versions of the protocol, `open` and `administer` begin with four bytes of a name and four of the version,
/// and `refused` begins with four bytes of the version.
package enum TransferMessage: Hashable, Sendable {
  /// The version of the protocol. Every change of a message or of its meaning gets a new one.
  static let version: UInt32 = 5
  static let name: [UInt8] = Array("LKTS".utf8)
  /// Maximum number of words of a launch command.
  static let launchWordsMax = 256

  /// Asks for a session.
  case open(TransferSession)
  /// Asks for something that concerns all sessions of the user, or the tasks of one.
  case administer(TransferAdministration)
  case command(TransferCommand)
  /// Asks for `flushed` with this number, once all commands before have been carried out and are on the disk. Numbers
  /// grow.
  case flush(UInt64)

  case refused(TransferLinkError)
  /// A part of the session's tasks.
  case records([TransferRecord])
  /// All tasks have been told.
  case opened
  case notice(TransferNotice)
  /// The answer to `flush`, for this number and all before.
  case flushed(UInt64)
  /// A session that the service carries out. Its tasks follow in `records`.
  case serves(TransferServedSession)
  /// The answer to `administer` is complete.
  case done(count: Int)
}

/// A request of the user, not of a session's program.
public enum TransferAdministration: Hashable, Sendable {
  /// Asks for the sessions that the service carries out, with their tasks.
  case list
  /// Changes tasks of the session with the journal in `directory`.
  case change(Change, directory: String, tasks: Tasks)

  public enum Change: UInt8, Hashable, Sendable {
    case pause = 0
    case resume = 1
    case cancel = 2
  }

  public enum Tasks: Hashable, Sendable {
    case all
    case some([Int])
  }
}

/// A session that the service carries out.
public struct TransferServedSession: Hashable, Sendable {
  public var identifier: String
  /// The directory of the session's journal.
  public var directory: String
  /// Whether a program is attached.
  public var isAttached: Bool

  public init(identifier: String, directory: String, isAttached: Bool) {
    self.identifier = identifier
    self.directory = directory
    self.isAttached = isAttached
  }
}
