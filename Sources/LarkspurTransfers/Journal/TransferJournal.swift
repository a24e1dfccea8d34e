import LarkspurIO
import Synchronization

/// The tasks of one background session on disk: a directory with one file for each task.
///
/// A record is written to `<task>.new`, synced, renamed to `<task>.task`, and then the directory is synced. A kill, a
/// full disk or a loss of power leaves the old record or the new one, and perhaps a `.new` file, which the next owner
/// removes. Files do not refer to one another, so a damaged file concerns its task only.
///
/// A journal owns its directory from its creation to its deinitialization by a lock on the file `lock`, which also ends
/// with the process and with `close`. All functions block their thread, and may be called on any; changes are made one
/// after another.
public final class TransferJournal: Sendable {
  /// Maximum number of records. The limit stops a program that creates tasks in a loop from filling the disk.
  public static let tasksMax = 10_000
  /// Maximum size of all records together, in bytes, when a task is added. A reader has all records in memory.
  public static let bytesMax = 64 << 20
  /// Maximum size of all records together, in bytes, when the record of a task grows: its end must have room.
  public static let grownBytesMax = 2 * bytesMax
  /// Maximum number of damaged records that are kept. Those of the earliest tasks are removed first.
  public static let damagedMax = 32

  /// A record that could not be read.
  public struct Problem: Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
      /// The record is damaged. The file was renamed to `<task>.damaged`, so that it is reported once.
      case damaged(TransferValueError)
      /// Another version of Larkspur wrote the record. The file stays as it is, for that version.
      case otherVersion(TransferValueError)
      /// The disk failed. The file stays as it is.
      case unreadable(Errno)
    }

    public var task: Int
    public var reason: Reason
  }

  /// The content of the directory.
  public struct Content: Sendable {
    /// The records in the order of their tasks.
    public var records: [TransferRecord] = []
    public var problems: [Problem] = []
  }

  private struct State {
    /// The sizes of the record files in bytes, by task.
    private(set) var sizes: [Int: Int] = [:]
    /// The sum of all sizes.
    private(set) var byteCount = 0
    /// The tasks whose records this journal has read or written. Other records must not be replaced.
    var readable: Set<Int> = []
    /// Whether a record has been written since the directory was synced.
    var isUnsynced = false

    /// Sets the size of a task's record file, or removes it. A file that is too large for a record counts as one byte more:
    /// the file concerns its task only.
    mutating func setSize(_ size: Int?, of task: Int) {
      let size = size.map { min($0, TransferRecord.bytesMax + 1) }
      byteCount += (size ?? 0) - (sizes[task] ?? 0)
      sizes[task] = size
    }

    mutating func removeSizes() {
      sizes = [:]
      byteCount = 0
    }

    /// Whether the task has a record that this journal has not read.
    func hasUnreadableRecord(_ task: Int) -> Bool { sizes[task] != nil && !readable.contains(task) }
  }

  /// The identifier of the session.
  public let session: String
  private let files: any TransferFiles
  private let log: @Sendable (String) -> Void
  /// The lock of the directory, or `nil` if the journal has been closed.
  private let lock: Mutex<(any Sendable)?>
  private let state = Mutex(State())

  /// Opens a session's journal at a path, and creates its directory if it does not exist.
  ///
  /// - Parameters:
  ///   - path: A directory that has no other use: see `TransferLocation`.
  ///   - log: Gets one line for each file that is set aside or removed. Lines name files and reasons, and quote nothing
  ///     of a record.
  /// - Throws: `inUse`, `unavailable`, `full`, and `record` if the identifier is not valid.
  public convenience init(
    path: String, session: String, log: @escaping @Sendable (String) -> Void
  ) throws(TransferJournalError) {
    var opened = Self.locked(path)
    for _ in 0..<Self.removalsMax {
      // The earlier owner has removed the directory meanwhile.
      guard case .failure(.unavailable(.noSuchFile)) = opened else { break }
      opened = Self.locked(path)
    }
    let (files, lock) = try opened.get()
    try self.init(files, lock, session, log)
  }

  /// Maximum number of removals of a directory while a journal is opened.
  private static let removalsMax = 100

  /// Takes the lock, removes the files of interrupted writes, and removes the content files of tasks without a record.
  public convenience init(
    files: any TransferFiles, session: String, log: @escaping @Sendable (String) -> Void
  ) throws(TransferJournalError) {
    try self.init(files, try Self.locked(files).get(), session, log)
  }

  private init(
    _ files: any TransferFiles, _ lock: any Sendable, _ session: String, _ log: @escaping @Sendable (String) -> Void
  ) throws(TransferJournalError) {
    guard TransferRecord.isSession(session) else { throw .record(.invalid(TransferRecord.sessionPart)) }
    self.session = session
    self.files = files
    self.log = log
    self.lock = Mutex(lock)
    try recover()
  }

  private static func locked(_ path: String) -> Result<(DirectoryTransferFiles, any Sendable), TransferJournalError> {
    Result { () throws(Errno) in try DirectoryTransferFiles(path: path) }.mapError(TransferJournalError.unavailable)
      .flatMap { files in locked(files).map { (files, $0) } }
  }

  private static func locked(_ files: any TransferFiles) -> Result<any Sendable, TransferJournalError> {
    Result { () throws(Errno) in try files.lock(TransferFileName.lock) }.mapError(TransferJournalError.unavailable)
      .flatMap { lock in lock.map { .success($0) } ?? .failure(.inUse) }
  }

  /// Releases the directory before the deinitialization does so, and removes it if it has no files of tasks: a program
  /// may give each of its sessions a new name. Added records are synced. The journal must not be used afterwards.
  public func close() {
    lock.withLock { lock in
      guard lock != nil else { return }
      try? sync()
      removeUnused()
      lock = nil
    }
  }

  /// Removes the directory if nothing is left of any task. The lock's file goes last: from then on another journal can make
  /// its own, and then the directory stays.
  private func removeUnused() {
    let own = [TransferFileName.lock, TransferSessionFile.name, TransferSessionFile.new]
    guard let names = try? files.list().map(\.name), names.allSatisfy(own.contains) else { return }
    do throws(Errno) {
      try files.removeIfPresent(TransferSessionFile.new)
      try files.removeIfPresent(TransferSessionFile.name)
      try files.removeIfPresent(TransferFileName.lock)
      try files.removeDirectory()
    } catch {
      // What stays harms nothing, and is the next journal's.
    }
  }

  // MARK: - Reading

  /// Reads all records. A damaged record is set aside: it is in `problems` once, and the log has a line.
  ///
  /// - Throws: `unavailable`, `full` if there are more files than any journal writes.
  public func content() throws(TransferJournalError) -> Content {
    try state.withLock { state throws(TransferJournalError) in try read(&state) }
  }

  private func read(_ state: inout State) throws(TransferJournalError) -> Content {
    let names = try list(&state)
    var content = Content()
    state.readable = []
    for task in names.filter({ $0.kind == .record }).map(\.task).sorted() {
      do throws(Errno) {
        let bytes = try files.read(
          TransferFileName(task: task, kind: .record).text, atMost: TransferRecord.bytesMax + 1)
        switch Result(catching: { () throws(TransferValueError) in try TransferRecord(bytes, of: task, session) }) {
        case .success(let record):
          state.readable.insert(task)
          content.records.append(record)
        case .failure(let error) where error.isOfOtherVersion:
          content.problems.append(Problem(task: task, reason: .otherVersion(error)))
        case .failure(let error):
          setAside(task, error, &state)
          content.problems.append(Problem(task: task, reason: .damaged(error)))
        }
      } catch .noSuchFile {
        // The file has been removed by hand since the directory was listed.
        state.setSize(nil, of: task)
      } catch {
        content.problems.append(Problem(task: task, reason: .unreadable(error)))
      }
    }
    return content
  }

  /// Lists the journal's files, and updates what is known of them.
  private func list(_ state: inout State) throws(TransferJournalError) -> [TransferFileName] {
    let list = try Result { () throws(Errno) in try files.list() }.mapError(TransferJournalError.unavailable).get()
    var names: [TransferFileName] = []
    state.removeSizes()
    for facts in list {
      guard let name = TransferFileName(facts.name) else { continue }
      names.append(name)
      if name.kind == .record { state.setSize(facts.size, of: name.task) }
    }
    guard state.sizes.count <= Self.tasksMax, state.byteCount <= Self.grownBytesMax else { throw .full }
    return names
  }

  // MARK: - Changes

  /// Writes a task's record, and replaces an earlier one. The record is on the disk when the call returns. A record of an
  /// earlier process can be replaced after `content()` has read it.
  ///
  /// - Throws: `otherSession`, `record`, `unreadableRecord`, `full` and `unwritten`, after which the earlier state
  ///   stays; `unsynced`, after which the new state is in place.
  public func write(_ record: TransferRecord) throws(TransferJournalError) {
    try add(record)
    try sync()
  }

  /// Writes a task's record as `write` does, but for the last sync: new tasks share one. The record is on the disk after
  /// `sync`, or after the next call of `write` or `remove`. A loss of power before that leaves the earlier state or the new
  /// one.
  ///
  /// - Throws: The errors of `write` without `unsynced`.
  public func add(_ record: TransferRecord) throws(TransferJournalError) {
    guard record.session == session else { throw .otherSession(record.session) }
    let bytes = try Result { () throws(TransferValueError) in try record.encoded() }
      .mapError(TransferJournalError.record).get()
    try state.withLock { state throws(TransferJournalError) in
      guard !state.hasUnreadableRecord(record.task) else { throw .unreadableRecord(task: record.task) }
      let earlier = state.sizes[record.task]
      guard earlier != nil || state.sizes.count < Self.tasksMax,
        bytes.count <= (earlier == nil ? Self.bytesMax : Self.grownBytesMax) - (state.byteCount - (earlier ?? 0))
      else { throw .full }
      try put(bytes, task: record.task)
      state.setSize(bytes.count, of: record.task)
      state.readable.insert(record.task)
      state.isUnsynced = true
    }
  }

  /// Returns once all records that were written are on the disk.
  ///
  /// - Throws: `unsynced`. The next call tries again.
  public func sync() throws(TransferJournalError) {
    try state.withLock { state throws(TransferJournalError) in if state.isUnsynced { try sync(&state) } }
  }

  private func put(_ bytes: [UInt8], task: Int) throws(TransferJournalError) {
    do throws(Errno) {
      try files.replace(
        TransferFileName(task: task, kind: .record).text, by: bytes,
        new: TransferFileName(task: task, kind: .new).text)
    } catch {
      throw .unwritten(error)
    }
  }

  /// Returns once the bytes that a task has received are on the disk, and the name of their file. A record that counts the
  /// bytes is written after that.
  public func syncContent(of task: Int) throws(Errno) {
    try files.sync(TransferFileName.content(of: task))
    try files.sync()
  }

  /// Stores what a task has received, in place of an earlier file. Returns once the file and its name are on the disk. A
  /// record that names the file is written after that.
  public func storeContent(_ bytes: [UInt8], of task: Int) throws(Errno) {
    try state.withLock { state throws(Errno) in
      try files.replace(
        TransferFileName.content(of: task), by: bytes, new: TransferFileName(task: task, kind: .new).text)
      try files.sync()
      state.isUnsynced = false
    }
  }

  /// Removes a task: its record, and then the file with the bytes that it received. Does nothing if there is no task.
  ///
  /// - Throws: `unreadableRecord` and `unwritten`, after which the task stays; `unsynced`, after which it is gone.
  public func remove(task: Int) throws(TransferJournalError) {
    try state.withLock { state throws(TransferJournalError) in
      guard !state.hasUnreadableRecord(task) else { throw .unreadableRecord(task: task) }
      do throws(Errno) {
        try files.removeIfPresent(TransferFileName(task: task, kind: .record).text)
      } catch {
        throw .unwritten(error)
      }
      state.setSize(nil, of: task)
      // The bytes go only when the record cannot come back. If the sync fails, the next owner removes them.
      try sync(&state)
      for name in TransferFileName.contents(of: task) { try? files.remove(name) }
    }
  }

  private func sync(_ state: inout State) throws(TransferJournalError) {
    do throws(Errno) { try files.sync() } catch { throw .unsynced(error) }
    state.isUnsynced = false
  }

  // MARK: - Recovery

  private func recover() throws(TransferJournalError) {
    try state.withLock { state throws(TransferJournalError) in
      let names = try list(&state)
      for name in names where name.kind == .new { remove(name, "its write was interrupted") }
      // The bytes of a damaged record stay beside it: a user may still want them.
      let tasks = Set(names.filter { $0.kind == .record || $0.kind == .damaged }.map(\.task))
      let lone = names.filter { TransferFileName.Kind.contents.contains($0.kind) && !tasks.contains($0.task) }
      // An earlier owner may have been killed before its last sync. A loss of power must not undo what this owner reads: the
      // program may have moved the file of a task that has ended, and an earlier record would count its bytes.
      state.isUnsynced = !names.isEmpty
      if state.isUnsynced { try? sync(&state) }
      // Unless the removal of a record is on the disk, the record can come back, and must find its bytes.
      if !state.isUnsynced { for name in lone { remove(name, "it has no record") } }
      let damaged = names.filter { $0.kind == .damaged }.sorted { $0.task < $1.task }
      for name in damaged.dropLast(Self.damagedMax) {
        remove(name, "more than \(Self.damagedMax) damaged records are kept")
        guard state.sizes[name.task] == nil else { continue }
        for kind in TransferFileName.Kind.contents {
          let content = TransferFileName(task: name.task, kind: kind)
          if names.contains(content) { remove(content, "it has no record") }
        }
      }
    }
  }

  private func remove(_ name: TransferFileName, _ reason: String) {
    do throws(Errno) {
      try files.remove(name.text)
      log("removed \(name.text) of session \"\(session)\": \(reason)")
    } catch {
      log("cannot remove \(name.text) of session \"\(session)\": \(error)")
    }
  }

  /// Renames a damaged record. If that fails, the file stays, and is reported again.
  private func setAside(_ task: Int, _ reason: TransferValueError, _ state: inout State) {
    let name = TransferFileName(task: task, kind: .record).text
    let other = TransferFileName(task: task, kind: .damaged).text
    do throws(Errno) {
      try files.rename(name, to: other)
      state.setSize(nil, of: task)
      log("set \(name) of session \"\(session)\" aside as \(other): \(reason)")
    } catch {
      log("cannot set \(name) of session \"\(session)\" aside: \(reason), and then \(error)")
    }
  }
}
