import Foundation
import LarkspurHTTP
import LarkspurIO

/// The entries of a cache on disk: one file each.
///
/// A file is written under another name and renamed when it is complete, so that whoever is killed at whatever moment
/// leaves either the old entry or the new one, and perhaps a file that nobody takes for an entry. Nothing is flushed:
/// a power cut may leave a torn file behind, which its checksums show. No file says what the others are; several
/// processes may therefore use one folder. All calls block, and are made on one queue.
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

  /// All entries, and what they take. Removes what writers that were killed have left.
  mutating func scan(now: Double) -> [(name: CacheEntryName, facts: Folder.Facts)] {
    guard let folder = folder(isCreating: false), let list = try? folder.list() else { return [] }
    var entries: [(name: CacheEntryName, facts: Folder.Facts)] = []
    for facts in list {
      if let name = CacheEntryName(fileName: facts.name) {
        entries.append((name, facts))
      } else if facts.name.hasSuffix(CacheEntryName.temporarySuffix), facts.changedTime < now - Self.orphanSecondsMax {
        try? folder.remove(facts.name)
      }
    }
    return entries
  }

  /// The entry; nil if there is none, or none that is whole.
  mutating func read(_ name: CacheEntryName, now: Double) -> (record: CacheRecord, body: Data)? {
    guard let folder = folder(isCreating: false),
      let file = try? folder.read(name.fileName, atMost: Self.fileBytesMax + 1), file.count <= Self.fileBytesMax
    else { return nil }
    guard let (record, body) = CacheRecord.parse(file) else {
      try? folder.remove(name.fileName)
      return nil
    }
    try? folder.setTimes(name.fileName, used: now, changed: nil)
    return (record, Data(file[body]))
  }

  /// Returns the file's size in bytes; nil if nothing was written.
  mutating func write(_ name: CacheEntryName, _ record: CacheRecord, _ body: Data, now: Double) -> Int? {
    guard let head = record.head(body: body.span) else { return nil }
    for _ in 0..<8 {
      guard let folder = folder(isCreating: true) else { return nil }
      lastNumber += 1
      let temporary = CacheEntryName.temporary(lastNumber, process: process)
      do throws(Errno) {
        try folder.create(temporary, head, body)
      } catch .fileExists {
        // Another process may have had this one's number once, and have been killed.
        continue
      } catch .noSuchFile {
        // Somebody has removed the folder: the next one is made anew.
        files = nil
        continue
      } catch {
        // The disk is full, perhaps: what was written is of no use.
        try? folder.remove(temporary)
        return nil
      }
      do throws(Errno) {
        try folder.setTimes(temporary, used: now, changed: record.storedTime)
        try folder.rename(temporary, to: name.fileName)
        return head.count + body.count
      } catch {
        try? folder.remove(temporary)
        return nil
      }
    }
    return nil
  }

  mutating func remove(_ name: CacheEntryName) {
    try? folder(isCreating: false)?.remove(name.fileName)
  }
}
