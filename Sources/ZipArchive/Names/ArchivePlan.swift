/// What to extract, in the order of the archive, and where: the checks that need no look at the disk or at the
/// contents.
package struct ArchivePlan: Sendable {
  package struct Entry: Hashable, Sendable {
    package var index: Int
    /// The name as text.
    package var name: String
    package var path: [String]
    package var kind: EntryRecord.Kind
    /// Whether the entry is extracted. macOS adds entries below `__MACOSX` that have a meaning only there.
    package var isWanted: Bool
  }

  package private(set) var entries: [Entry] = []
  /// The sizes of all entries, as the archive says.
  package private(set) var totalSize: UInt64 = 0

  private let archiveSize: UInt64
  private var names: NameTable
  /// The number of bytes of the archive that the entries take.
  private var occupied: UInt64 = 0

  /// Creates a plan without entries.
  ///
  /// - Parameter archiveSize: The size of the archive in bytes.
  package init(archiveSize: UInt64, _ limits: SSZipArchiveLimits) {
    self.archiveSize = archiveSize
    names = NameTable(limits)
  }

  /// Creates a plan of all entries of an archive.
  ///
  /// - Parameter archiveSize: The size of the archive in bytes.
  package init(_ records: [EntryRecord], archiveSize: UInt64, _ limits: SSZipArchiveLimits) throws(ArchiveRefusal) {
    self.init(archiveSize: archiveSize, limits)
    for record in records { try add(record) }
  }

  /// Adds the next entry of the archive.
  package mutating func add(_ record: EntryRecord) throws(ArchiveRefusal) {
    let name = try EntryName.text(record.name, isUTF8: record.isUTF8, host: record.host)
    let path = try EntryPath(name)
    let kind = try record.kind(of: path, named: name)
    try names.add(path.components, isDirectory: kind == .directory, named: name)
    let isWanted = path.components.first != "__MACOSX"
    entries.append(Entry(index: entries.count, name: name, path: path.components, kind: kind, isWanted: isWanted))
    totalSize = totalSize.addingSaturated(record.size)
    // Each entry has two headers: 30 bytes before its contents, and 46 in the central directory.
    occupied = occupied.addingSaturated(record.compressedSize).addingSaturated(76)
    if occupied > archiveSize { throw ArchiveRefusal(.overlappingEntries, name) }
  }
}

/// The names that are in use, with the directories above them, as a tree: each name is stored once, and time and memory
/// are in proportion to the bytes of the names.
private struct NameTable: Sendable {
  private enum Name: Hashable, Sendable {
    /// Equal for names that are equal without regard to case and to Unicode normalization, because strings that are
    /// canonically equivalent are equal.
    case folded(String)
    case exact([UInt8])
  }

  private struct Key: Hashable, Sendable {
    /// The number of the directory. 0 is the destination.
    var parent: Int
    var name: Name
  }

  private struct Use: Sendable {
    /// Different for each use, from 1.
    var number: Int
    var name: String
    var isDirectory: Bool
  }

  private let permitsSimilarNames: Bool
  /// A name of a few hundred bytes can need a hundred directories.
  private let countMax: Int
  private var uses: [Key: Use] = [:]
  /// The directories on the way to the latest entry.
  private var chain: [(name: String, number: Int)] = []

  init(_ limits: SSZipArchiveLimits) {
    (permitsSimilarNames, countMax) = (limits.permitsSimilarNames, limits.entryCountMax)
  }

  mutating func add(_ components: [String], isDirectory: Bool, named name: String) throws(ArchiveRefusal) {
    guard let last = components.last else { return }
    let parents = components.dropLast()
    let common = zip(chain, parents).prefix { $0.name.utf8.elementsEqual($1.utf8) }.count
    chain.removeSubrange(common...)
    for part in parents.dropFirst(common) { chain.append((part, try use(part, isDirectory: true, named: name))) }
    _ = try use(last, isDirectory: isDirectory, named: name)
  }

  /// - Parameter part: A name in the last directory of `chain`.
  /// - Returns: The number of the use.
  private mutating func use(_ part: String, isDirectory: Bool, named name: String) throws(ArchiveRefusal) -> Int {
    // Upper case first: the upper case of `ß` is `SS`.
    let found: Name = permitsSimilarNames ? .exact(Array(part.utf8)) : .folded(part.uppercased().lowercased())
    let key = Key(parent: chain.last?.number ?? 0, name: found)
    guard let use = uses[key] else {
      if uses.count >= countMax { throw ArchiveRefusal(.tooManyEntries) }
      let number = uses.count + 1
      uses[key] = Use(number: number, name: part, isDirectory: isDirectory)
      return number
    }
    guard use.isDirectory, isDirectory, use.name.utf8.elementsEqual(part.utf8) else {
      throw ArchiveRefusal(.conflictingNames, name)
    }
    return use.number
  }
}

extension UInt64 {
  /// The sum, or the greatest number if it does not fit.
  package func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
