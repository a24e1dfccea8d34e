import LarkspurTransfers
import Synchronization

/// Collects the lines that a journal logs.
final class LogLines: Sendable {
  private let state = Mutex<[String]>([])

  var all: [String] { state.withLock { $0 } }

  func add(_ line: String) { state.withLock { $0.append(line) } }
}

extension TransferJournal {
  /// Opens the fixtures' session.
  convenience init(_ files: any TransferFiles, _ lines: LogLines = LogLines()) throws(TransferJournalError) {
    try self.init(files: files, session: Fixture.session) { lines.add($0) }
  }

  /// Opens the journal of the fixtures' session at a path, and repeats while it is in use: a process that another test
  /// has forked holds a copy of an earlier lock until it executes its own program.
  static func waiting(at path: String) throws -> TransferJournal {
    while true {
      // The compiler of Swift 6.3 crashes on a `do` that returns from this loop.
      let result = Result { try TransferJournal(path: path, session: Fixture.session) { _ in } }
      if case .failure(TransferJournalError.inUse) = result { continue }
      return try result.get()
    }
  }
}
