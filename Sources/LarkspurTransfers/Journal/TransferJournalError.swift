import LarkspurIO

/// The reason why an operation of a journal failed.
public enum TransferJournalError: Error, Hashable, Sendable {
  /// Another process, or another journal in this one, owns the directory.
  case inUse
  /// The directory cannot be opened, locked or listed.
  case unavailable(Errno)
  /// The record cannot be written. The earlier state stays.
  case record(TransferValueError)
  /// The record belongs to another session than the journal.
  case otherSession(String)
  /// The task has a record that this version or this process cannot read, and that a write would destroy.
  case unreadableRecord(task: Int)
  /// The journal would have more than `TransferJournal.tasksMax` records or `TransferJournal.bytesMax` bytes.
  case full
  /// The state home has more than this number of directories: the sessions in the others are passed over.
  case crowded(directoriesMax: Int)
  /// The disk failed, or is full. The earlier state stays.
  case unwritten(Errno)
  /// The new state is in place, but a loss of power may still undo it.
  case unsynced(Errno)
}

extension TransferJournalError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .inUse: "another process carries out the transfers of this session"
    case .unavailable(let error): "the directory of the transfers cannot be used: \(error)"
    case .record(let error): "\(error)"
    case .otherSession(let session): "the record belongs to the session \"\(session)\""
    case .unreadableRecord(let task): "task \(task) has a record that cannot be read, and that stays as it is"
    case .full:
      """
      a session has at most \(TransferJournal.tasksMax) transfers, and records of \(TransferJournal.bytesMax) bytes \
      together
      """
    case .crowded(let most): "there are more than \(most) directories, and the sessions in the others are passed over"
    case .unwritten(let error): "the change cannot be written: \(error)"
    case .unsynced(let error): "the change may not survive a loss of power: \(error)"
    }
  }
}
