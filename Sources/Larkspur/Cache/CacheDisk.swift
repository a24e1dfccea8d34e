import Foundation
import LarkspurHTTP
import LarkspurIO

/// The entries of a cache on disk. Each entry is one file; after a server has confirmed the entry, a small second file
/// holds its later head.
///
/// A file is written under a temporary name and renamed when it is complete. A process that is killed at any moment
/// leaves the old file or the new one, and perhaps a temporary file, which is ignored. A later head names the
/// generation of its entry; next to another entry it is ignored and removed. Files are not synced: a power cut may
/// leave a damaged file, which its checksums reveal. No file refers to the others, so several processes may use one
/// directory. All calls block, and are made on one queue.
struct CacheDisk {
  /// Age in seconds at which a temporary file is removed. A writer takes far less time.
  static let orphanSecondsMax = 3600.0
  /// Maximum number of bytes of a file that is read. A larger file, which another program has put there, would fill the
  /// memory.
  static let fileBytesMax = 1 << 30

  /// Whether the cache has ever had a disk capacity. Without one, the directory may belong to another cache and is not
  /// touched.
  var isInUse: Bool
  private let open: @Sendable (_ isCreating: Bool) throws(Errno) -> any CacheFiles
  private var files: (any CacheFiles)?
  private var lastNumber: UInt64 = 0
  private let process: Int32

  init(
    isInUse: Bool, process: Int32 = ProcessInfo.processInfo.processIdentifier,
    open: @escaping @Sendable (_ isCreating: Bool) throws(Errno) -> any CacheFiles
  ) {
    self.isInUse = isInUse
    self.process = process
    self.open = open
  }

  private mutating func directory(isCreating: Bool) -> (any CacheFiles)? {
    guard isInUse else { return nil }
    if let files { return files }
    // If the directory cannot be opened, the cache finds nothing. A disk error never fails a request.
    files = try? open(isCreating)
    return files
  }

  /// An entry in the directory, with the size of its later head if there is one.
  struct Listed: Sendable {
    var name: CacheEntryName
    /// The size of the two files together, in bytes.
    var size: Int
    var usedTime: Double
    var changedTime: Double
    /// The size of the file with the later head, in bytes, or `nil` if there is none.
    var headSize: Int?
  }

  /// Returns all entries with their sizes. Removes old temporary files of writers that were killed, and heads without
  /// an entry.
  mutating func scan(now: Double) -> [Listed] {
    guard let directory = directory(isCreating: false), let list = try? directory.list() else { return [] }
    var entries: [Listed] = []
    var heads: [CacheEntryName: Directory.Facts] = [:]
    for facts in list {
      if let name = CacheEntryName(fileName: facts.name) {
        entries.append(
          Listed(name: name, size: facts.size, usedTime: facts.usedTime, changedTime: facts.changedTime))
      } else if let name = CacheEntryName(headFileName: facts.name) {
        heads[name] = facts
      } else if facts.name.hasSuffix(CacheEntryName.temporarySuffix),
        // The clock of the process that left the file may have been ahead.
        abs(now - facts.changedTime) > Self.orphanSecondsMax
      {
        try? directory.remove(facts.name)
      }
    }
    guard !heads.isEmpty else { return entries }
    for index in entries.indices {
      guard let head = heads.removeValue(forKey: entries[index].name) else { continue }
      entries[index].size += head.size
      entries[index].headSize = head.size
      entries[index].changedTime = max(entries[index].changedTime, head.changedTime)
    }
    for facts in heads.values { try? directory.remove(facts.name) }
    return entries
  }

  /// An entry that was read.
  struct Found {
    var record: CacheRecord
    var body: Data
    /// Whether the record is that of the later head.
    var hasLaterHead = false
  }

  /// Reads an entry. A damaged file is removed.
  ///
  /// - Parameter isHeadExpected: Whether to look for a later head. A head that does not belong to this entry is
  ///   removed.
  /// - Returns: The entry, or `nil` if there is no complete entry.
  mutating func read(_ name: CacheEntryName, isHeadExpected: Bool) -> Found? {
    guard let directory = directory(isCreating: false),
      let file = try? directory.read(name.fileName, atMost: Self.fileBytesMax + 1), file.count <= Self.fileBytesMax
    else { return nil }
    guard let (record, body) = CacheRecord.parse(file) else {
      try? directory.remove(name.fileName)
      return nil
    }
    var found = Found(record: record, body: Data(file[body]))
    guard isHeadExpected else { return found }
    if let file = try? directory.read(name.headFileName, atMost: CacheRecord.headFileBytesMax + 1),
      let head = CacheRecord.parseHead(file), head.record.generation == record.generation,
      head.record.key == record.key, head.bodyCount == UInt64(body.count)
    {
      found.record = head.record
      found.hasLaterHead = true
    } else {
      try? directory.remove(name.headFileName)
    }
    return found
  }

  /// Writes an entry.
  ///
  /// - Returns: The file's size in bytes, or `nil` if nothing was written.
  mutating func write(_ name: CacheEntryName, _ record: CacheRecord, _ body: Data, now: Double) -> Int? {
    guard let head = record.head(body: body.span),
      put(name.fileName, head, body, used: now, changed: record.storedTime, isCreating: true)
    else { return nil }
    return head.count + body.count
  }

  /// Writes a later head for the entry with the record's generation. Does not create the directory.
  ///
  /// - Returns: The file's size in bytes, or `nil` if nothing was written.
  mutating func writeHead(_ name: CacheEntryName, _ record: CacheRecord, bodyCount: Int) -> Int? {
    guard let head = record.headAlone(bodyCount: bodyCount),
      put(name.headFileName, head, Data(), used: nil, changed: record.storedTime, isCreating: false)
    else { return nil }
    return head.count
  }

  /// Writes a file under a temporary name and renames it. Returns whether the file is in its place.
  private mutating func put(
    _ fileName: String, _ head: [UInt8], _ body: Data, used: Double?, changed: Double, isCreating: Bool
  ) -> Bool {
    for _ in 0..<8 {
      guard let directory = directory(isCreating: isCreating) else { return false }
      lastNumber += 1
      let temporary = CacheEntryName.temporary(lastNumber, process: process)
      do throws(Errno) {
        try directory.create(temporary, head, body)
      } catch .fileExists {
        // An earlier process with the same number may have been killed and left this file.
        continue
      } catch .noSuchFile {
        // The directory has been removed: open it again, which creates it if `isCreating` is set.
        files = nil
        continue
      } catch {
        // The disk may be full: remove the incomplete file.
        try? directory.remove(temporary)
        return false
      }
      do throws(Errno) {
        try directory.setTimes(temporary, used: used, changed: changed)
        try directory.rename(temporary, to: fileName)
        return true
      } catch {
        try? directory.remove(temporary)
        return false
      }
    }
    return false
  }

  /// Writes the time of an entry's last use.
  mutating func setUsed(_ name: CacheEntryName, at time: Double) {
    try? directory(isCreating: false)?.setTimes(name.fileName, used: time, changed: nil)
  }

  /// Removes an entry and then its later head, which is useless without the entry.
  mutating func remove(_ name: CacheEntryName) {
    guard let directory = directory(isCreating: false) else { return }
    try? directory.remove(name.fileName)
    try? directory.remove(name.headFileName)
  }

  mutating func removeHead(_ name: CacheEntryName) {
    try? directory(isCreating: false)?.remove(name.headFileName)
  }
}
