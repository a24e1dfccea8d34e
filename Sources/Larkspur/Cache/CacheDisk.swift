import Foundation
import LarkspurHTTP
import LarkspurIO

/// The entries of a cache on disk: one file each, and beside it a small one with a later head once a server has confirmed
/// the entry.
///
/// A file is written under another name and renamed when it is complete. A process that is killed at any moment leaves the
/// old file or the new one, and perhaps a temporary file, which counts for nothing. A later head says the generation of its
/// entry; beside another entry it is ignored and removed. Nothing is flushed: a power cut may leave a torn file behind, which
/// its checksums show. No file says what the others are; several processes may therefore use one folder. All calls block, and
/// are made on one queue.
struct CacheDisk {
  /// How long a file that was never renamed may lie about, in seconds. A writer takes far less.
  static let orphanSecondsMax = 3600.0
  /// A record larger than this is not read: somebody else's file would fill the memory.
  static let fileBytesMax = 1 << 30

  /// Whether the cache has ever had room on disk. Without any the folder is not its own: it may be another cache's.
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

  private mutating func folder(isCreating: Bool) -> (any CacheFiles)? {
    guard isInUse else { return nil }
    if let files { return files }
    // A cache without its folder is a cache that finds nothing: whatever is wrong with the disk is no error of a
    // request.
    files = try? open(isCreating)
    return files
  }

  /// An entry in the folder, with its later head if there is one.
  struct Listed: Sendable {
    var name: CacheEntryName
    /// Bytes of both files.
    var size: Int
    var usedTime: Double
    var changedTime: Double
    /// Bytes of the file with the later head, or `nil` if there is none.
    var headSize: Int?
  }

  /// All entries, and what they take. Removes what writers that were killed have left, and heads without an entry.
  mutating func scan(now: Double) -> [Listed] {
    guard let folder = folder(isCreating: false), let list = try? folder.list() else { return [] }
    var entries: [Listed] = []
    var heads: [CacheEntryName: Folder.Facts] = [:]
    for facts in list {
      if let name = CacheEntryName(fileName: facts.name) {
        entries.append(
          Listed(name: name, size: facts.size, usedTime: facts.usedTime, changedTime: facts.changedTime))
      } else if let name = CacheEntryName(headFileName: facts.name) {
        heads[name] = facts
      } else if facts.name.hasSuffix(CacheEntryName.temporarySuffix), facts.changedTime < now - Self.orphanSecondsMax {
        try? folder.remove(facts.name)
      }
    }
    guard !heads.isEmpty else { return entries }
    for index in entries.indices {
      guard let head = heads.removeValue(forKey: entries[index].name) else { continue }
      entries[index].size += head.size
      entries[index].headSize = head.size
      entries[index].changedTime = max(entries[index].changedTime, head.changedTime)
    }
    for facts in heads.values { try? folder.remove(facts.name) }
    return entries
  }

  /// An entry as it was read.
  struct Found {
    var record: CacheRecord
    var body: Data
    /// Whether the record is that of the later head.
    var hasLaterHead = false
  }

  /// Returns the entry, or `nil` if there is none, or none that is whole.
  ///
  /// - Parameter isHeadExpected: Whether a later head is looked for. One that is not this entry's is removed.
  mutating func read(_ name: CacheEntryName, isHeadExpected: Bool) -> Found? {
    guard let folder = folder(isCreating: false),
      let file = try? folder.read(name.fileName, atMost: Self.fileBytesMax + 1), file.count <= Self.fileBytesMax
    else { return nil }
    guard let (record, body) = CacheRecord.parse(file) else {
      try? folder.remove(name.fileName)
      return nil
    }
    var found = Found(record: record, body: Data(file[body]))
    guard isHeadExpected else { return found }
    if let file = try? folder.read(name.headFileName, atMost: CacheRecord.headFileBytesMax + 1),
      let head = CacheRecord.parseHead(file), head.record.generation == record.generation,
      head.record.key == record.key, head.bodyCount == UInt64(body.count)
    {
      found.record = head.record
      found.hasLaterHead = true
    } else {
      try? folder.remove(name.headFileName)
    }
    return found
  }

  /// Returns the file's size in bytes, or `nil` if nothing was written.
  mutating func write(_ name: CacheEntryName, _ record: CacheRecord, _ body: Data, now: Double) -> Int? {
    guard let head = record.head(body: body.span),
      put(name.fileName, head, body, used: now, changed: record.storedTime, isCreating: true)
    else { return nil }
    return head.count + body.count
  }

  /// Writes a later head for the entry that has the record's generation. The folder is not made for it.
  ///
  /// - Returns: The file's size in bytes, or `nil` if nothing was written.
  mutating func writeHead(_ name: CacheEntryName, _ record: CacheRecord, bodyCount: Int) -> Int? {
    guard let head = record.headAlone(bodyCount: bodyCount),
      put(name.headFileName, head, Data(), used: nil, changed: record.storedTime, isCreating: false)
    else { return nil }
    return head.count
  }

  /// Writes a file under another name, and renames it. Returns whether it is there.
  private mutating func put(
    _ fileName: String, _ head: [UInt8], _ body: Data, used: Double?, changed: Double, isCreating: Bool
  ) -> Bool {
    for _ in 0..<8 {
      guard let folder = folder(isCreating: isCreating) else { return false }
      lastNumber += 1
      let temporary = CacheEntryName.temporary(lastNumber, process: process)
      do throws(Errno) {
        try folder.create(temporary, head, body)
      } catch .fileExists {
        // Another process may have had this one's number once, and have been killed.
        continue
      } catch .noSuchFile {
        // The folder has been removed: the next one is made anew.
        files = nil
        continue
      } catch {
        // The disk is full, perhaps: what was written is of no use.
        try? folder.remove(temporary)
        return false
      }
      do throws(Errno) {
        try folder.setTimes(temporary, used: used, changed: changed)
        try folder.rename(temporary, to: fileName)
        return true
      } catch {
        try? folder.remove(temporary)
        return false
      }
    }
    return false
  }

  /// Notes when an entry was last used.
  mutating func setUsed(_ name: CacheEntryName, at time: Double) {
    try? folder(isCreating: false)?.setTimes(name.fileName, used: time, changed: nil)
  }

  /// The entry goes before its later head, which is nothing by itself.
  mutating func remove(_ name: CacheEntryName) {
    guard let folder = folder(isCreating: false) else { return }
    try? folder.remove(name.fileName)
    try? folder.remove(name.headFileName)
  }

  mutating func removeHead(_ name: CacheEntryName) {
    try? folder(isCreating: false)?.remove(name.headFileName)
  }
}
