import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// The files of a download: the part, which gets the destination's name at the end, and the record of the part's
/// content.
///
/// After a kill or a loss of power at any moment, the record names no byte that is not on the disk, the part has bytes of one
/// version, and the destination has its earlier content or the whole:
///
/// - A record is written after the bytes that it names have reached the disk (`checkpoint`).
/// - A record is removed from the disk before a byte of another version is written (`discard`).
/// - The part gets its name when it is on the disk, and the record is removed when the name is (`install`). In between, the
///   record's inode is that of the destination.
///
/// All functions block their thread. `write` and `read` may be called on any threads at once. The others are called one
/// after another, and those but `checkpoint` while no call of `write` is under way.
package final class DownloadStore: Sendable {
  /// The reason for which a download cannot have its files.
  package enum Failure: Error, Hashable, Sendable {
    /// Another download, in this or another process, writes the file.
    case inUse
    /// The name is empty, has a slash, is too long, or ends as the names of files beside destinations do.
    case name
    /// The destination is a directory, a device, a pipe or a socket.
    case destination(OpenDirectory.Kind)
    /// An entry beside the destination, with this name, is no regular file of the user with one name. It is not touched.
    case foreign(String)
    case disk(Errno)
  }

  /// Returns the name of the file for the bytes of an incomplete download.
  package static func partName(_ name: String) -> String { name + ".larkspur-part" }
  /// Returns the name of the file for the record.
  package static func recordName(_ name: String) -> String { name + ".larkspur-download" }
  private static func newName(_ name: String) -> String { recordName(name) + ".new" }
  /// Returns the names of all files beside a destination, the record's before that of the bytes that it names.
  package static func namesBeside(_ name: String) -> [String] { [newName(name), recordName(name), partName(name)] }
  /// Whether a download of another destination may have a file of this name: two downloads at once would replace each
  /// other's files.
  static func isReserved(_ name: String) -> Bool { namesBeside("").contains { name.hasSuffix($0) } }
  /// Maximum size of a destination's name in bytes. File systems accept names of 255 bytes.
  package static let nameBytesMax = 255 - newName("").utf8.count

  private let files: any DownloadFiles
  private let name: String
  private let hashes: DownloadHashes
  private let bytesToLeave: Int
  private let part: any DownloadPart
  /// What the part has, or `nil` if the part is empty.
  package let record: DownloadRecord?
  /// The inode of the part.
  package let inode: UInt64
  /// Size of the destination in bytes if there is nothing to do: an earlier download was killed after its last byte, or the
  /// destination has the plan's checksum.
  package let completeCount: Int?

  private struct State {
    var hasRecord: Bool
    var isInstalled = false
    /// The checksum that a response has stated.
    var stated: DownloadChecksum?
    var isInterrupted = false
    /// The error of a sync. The kernel may have dropped bytes, and the next sync would not say so.
    var lost: Errno?
  }

  private let state: Mutex<State>

  // MARK: - Opening

  /// Opens the files of a destination.
  ///
  /// - Parameter path: The path of the destination. Symbolic links to its directory are followed.
  package convenience init(
    path: String, urls: [String], _ hashes: DownloadHashes, bytesToLeave: Int
  ) throws(Failure) {
    let directory = FilePaths.directory(of: path)
    let files: OpenDirectory
    do throws(Errno) {
      files = try OpenDirectory(path: directory.isEmpty ? "/" : directory)
    } catch {
      throw .disk(error)
    }
    try self.init(files, FilePaths.name(of: path), urls: urls, hashes, bytesToLeave: bytesToLeave)
  }

  /// Opens the files of a destination, and completes what a killed download has left.
  ///
  /// - Parameters:
  ///   - name: The name of the destination in the directory.
  ///   - urls: The URLs of the plan. A record without any of these URLs belongs to another plan.
  ///   - bytesToLeave: The number of bytes of the file system that `reserve` leaves free.
  package init(
    _ files: any DownloadFiles, _ name: String, urls: [String], _ hashes: DownloadHashes, bytesToLeave: Int
  ) throws(Failure) {
    guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(UInt8(ascii: "/")), !name.utf8.contains(0),
      name.utf8.count <= Self.nameBytesMax, !Self.isReserved(name)
    else { throw .name }
    let found = try Found(files, name, urls, hashes)
    (self.files, self.name, self.hashes, self.bytesToLeave) = (files, name, hashes, bytesToLeave)
    (part, record, inode, completeCount) = (found.part, found.record, found.inode, found.completeCount)
    state = Mutex(State(hasRecord: found.record != nil, isInstalled: found.completeCount != nil))
    guard completeCount == nil else { return }
    do throws(Errno) {
      if record == nil { try discard() } else { try files.removeIfPresent(Self.newName(name)) }
    } catch {
      close()
      throw .disk(error)
    }
  }

  /// The files as they were found.
  private struct Found {
    let part: any DownloadPart
    var record: DownloadRecord?
    let inode: UInt64
    var completeCount: Int?

    init(_ files: any DownloadFiles, _ name: String, _ urls: [String], _ hashes: DownloadHashes) throws(Failure) {
      let destination = try Self.disk { () throws(Errno) in try files.facts(name) }
      switch destination?.kind {
      case nil, .regularFile, .symbolicLink: break
      case let kind?: throw .destination(kind)
      }
      let found = try Self.part(files, name, .update)
      let record = try Self.record(files, name)
      // A checkpoint may have ended between its two last calls. A loss of power would bring the earlier record back.
      if record != nil { try? files.sync() }
      if let destination, destination.kind == .regularFile, let file = try? files.openPart(name, .read),
        hashes.isEmpty
          ? found == nil && record?.isOf(destination, urls) == true
          : hashes.verification(of: file, destination.size) == .fits
      {
        // The name of a killed download's file may not be on the disk yet.
        try Self.disk { () throws(Errno) in try files.sync() }
        try? files.removeIfPresent(DownloadStore.recordName(name))
        try? files.removeIfPresent(DownloadStore.newName(name))
        if found != nil { try? files.removeIfPresent(DownloadStore.partName(name)) }
        try? files.sync()
        (part, inode, completeCount) = (file, destination.inode, destination.size)
        return
      }
      let part: any DownloadPart
      if let found {
        part = found
      } else if let new = try Self.part(files, name, .create) {
        part = new
      } else {
        // Another download has created the part meanwhile.
        throw .inUse
      }
      self.part = part
      let facts = try Self.disk { () throws(Errno) in try part.facts() }
      inode = facts.inode
      // A part of another inode, or one that is too short, is not the record's: a file was removed or copied.
      if let record, found != nil, record.inode == inode, record.kept.end <= facts.size { self.record = record }
    }

    /// - Returns: `nil` if there is no part to update, or there is one in place of a new one.
    private static func part(
      _ files: any DownloadFiles, _ name: String, _ use: DownloadPartUse
    ) throws(Failure) -> (any DownloadPart)? {
      let name = DownloadStore.partName(name)
      let part: (any DownloadPart)?
      do throws(Errno) {
        part = try files.openPart(name, use)
      } catch {
        switch error {
        // Another download may remove a new file before this one locks it.
        case .noSuchFile,
          .fileExists where use == .create:
          return nil
        default: throw error == .notPermitted ? .foreign(name) : .disk(error)
        }
      }
      guard let part else { throw .inUse }
      return part
    }

    private static func record(_ files: any DownloadFiles, _ name: String) throws(Failure) -> DownloadRecord? {
      let name = DownloadStore.recordName(name)
      do throws(Errno) {
        return DownloadRecord(file: try files.read(name, atMost: DownloadRecord.bytesMax + 1))
      } catch {
        switch error {
        case .noSuchFile: return nil
        default: throw error == .notPermitted ? .foreign(name) : .disk(error)
        }
      }
    }

    private static func disk<Value>(_ call: () throws(Errno) -> Value) throws(Failure) -> Value {
      do throws(Errno) { return try call() } catch { throw .disk(error) }
    }
  }

  // MARK: - Bytes

  /// Writes bytes of the version that the part has bytes of.
  package func write(_ bytes: Span<UInt8>, at offset: Int) throws(Errno) { try part.write(bytes, at: offset) }

  /// Returns one to `count` bytes, or none at the end of the part, also when it has its name.
  package func read(at offset: Int, atMost count: Int) throws(Errno) -> [UInt8] {
    try part.read(at: offset, atMost: count)
  }

  // MARK: - The machine's actions

  /// Removes the record from the disk, and then empties the part.
  package func discard() throws(Errno) {
    try files.removeIfPresent(Self.recordName(name))
    try files.removeIfPresent(Self.newName(name))
    try files.sync()
    state.withLock { ($0.hasRecord, $0.stated) = (false, nil) }
    try part.cut(toBytes: 0)
  }

  /// Reserves room for the part.
  ///
  /// - Throws: `noSpace` if there is too little.
  package func reserve(_ total: Int) throws(Errno) {
    let (facts, free) = (try part.facts(), try files.freeBytes())
    let (left, isTooLittle) = free.subtractingReportingOverflow(max(0, total - facts.allocated))
    guard !isTooLittle, left >= bytesToLeave else { throw .noSpace }
    do throws(Errno) {
      try part.reserve(total)
    } catch {
      // A part of the room may be reserved, which would keep the disk full.
      try? part.cut(toBytes: facts.size)
      throw error
    }
  }

  /// Syncs the part, and then writes the record. A record without a source, of a download that cannot be resumed, is not
  /// written.
  ///
  /// - Throws: An error after which the earlier record or the new one is in place.
  package func checkpoint(_ record: DownloadRecord) throws(Errno) {
    try sync()
    guard let bytes = record.encoded() else { return }
    try files.replace(Self.recordName(name), by: bytes, new: Self.newName(name))
    state.withLock { $0.hasRecord = true }
    try files.sync()
  }

  private func sync() throws(Errno) {
    if let error = state.withLock({ $0.lost }) { throw error }
    do throws(Errno) {
      try part.sync()
    } catch {
      state.withLock { $0.lost = error }
      throw error
    }
  }

  /// Notes the checksum of the whole that a response states in `Repr-Digest` (RFC 9530, section 3). The checksum counts if
  /// the plan has no hashes, until `discard`. Called when the machine has accepted the head; any thread may call.
  ///
  /// - Parameter lines: The values of all field lines, in order.
  /// - Returns: `false` if the response contradicts the plan or an earlier response: it has other bytes.
  package func note(reprDigest lines: [String]) -> Bool {
    guard let stated = DownloadChecksum(digestField: lines) else { return true }
    return state.withLock { state in
      if !hashes.isEmpty { return hashes.checksum?.contradicts(stated) != true }
      guard let earlier = state.stated else {
        state.stated = stated
        return true
      }
      return !earlier.contradicts(stated)
    }
  }

  /// Compares the part with the hashes of the plan, or with the checksum that a response has stated.
  package func verify(total: Int) -> DownloadMachine.Verification {
    let stated = state.withLock { $0.stated }
    return (hashes.isEmpty ? DownloadHashes(checksum: stated) : hashes).verification(of: part, total) {
      state.withLock { !$0.isInterrupted }
    }
  }

  /// Makes `verify` fail soon, also a call that is under way: the download has been cancelled. Any thread may call.
  package func interrupt() { state.withLock { $0.isInterrupted = true } }

  /// Cuts the part to its size and gives it its name, which replaces a file of the name, and removes the record: each
  /// on the disk before the next. A file that replaces an older file gets the permissions of that file.
  package func install(total: Int) throws(Errno) {
    let (size, earlier) = (try part.facts().size, try files.facts(name))
    guard size >= total else { throw .inputOutput }
    if size > total { try part.cut(toBytes: total) }
    if let earlier, earlier.kind == .regularFile { try? part.setPermissions(earlier.permissions) }
    try sync()
    guard try isPartInPlace() else { throw .noSuchFile }
    try files.rename(Self.partName(name), to: name)
    state.withLock { $0.isInstalled = true }
    try files.sync()
    guard state.withLock({ $0.hasRecord }) else { return }
    try files.removeIfPresent(Self.recordName(name))
    try files.sync()
  }

  /// Whether the part has its name. A user may have removed or replaced it.
  private func isPartInPlace() throws(Errno) -> Bool { try files.facts(Self.partName(name))?.inode == inode }

  /// Ends the use of the files: another download may have them, also while there are references to this object. Removes the
  /// part of a download that has failed, unless a later download can continue it.
  package func close() {
    if !state.withLock({ $0.hasRecord || $0.isInstalled }), (try? isPartInPlace()) == true {
      try? files.remove(Self.partName(name))
    }
    part.unlock()
  }
}

extension DownloadRecord {
  /// Whether a destination is the whole part of a download from one of the URLs, which was killed before it removed the
  /// record.
  fileprivate func isOf(_ destination: OpenDirectory.Facts, _ urls: [String]) -> Bool {
    isComplete && inode == destination.inode && total == destination.size
      && sources.contains { urls.contains($0.url) }
  }
}
