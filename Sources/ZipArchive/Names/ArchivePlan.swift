/// What to extract, in the order of the archive, and where: the checks that need no look at the disk or at the contents.
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

  /// - Parameter archiveSize: The size of the archive in bytes.
  package init(_ records: [EntryRecord], archiveSize: UInt64, _ limits: SSZipArchiveLimits) throws(ArchiveRefusal) {
    var names = NameTable(limits)
    var occupied: UInt64 = 0
    for (index, record) in records.enumerated() {
      let name = try EntryName.text(record.name, isUTF8: record.isUTF8, host: record.host)
      let path = try EntryPath(name)
      let kind = try record.kind(of: path, named: name)
      try names.add(path.components, isDirectory: kind == .directory, named: name)
      let isWanted = path.components.first != "__MACOSX"
      entries.append(Entry(index: index, name: name, path: path.components, kind: kind, isWanted: isWanted))
      totalSize = totalSize.addingSaturated(record.size)
      // Each entry has two headers: 30 bytes before its contents, and 46 in the central directory.
      occupied = occupied.addingSaturated(record.compressedSize).addingSaturated(76)
      if occupied > archiveSize { throw ArchiveRefusal(.overlappingEntries, name) }
    }
  }
}

/// The names that are in use, with the directories above them.
private struct NameTable {
  private enum Key: Hashable {
    /// Equal for names that are equal without regard to case and to Unicode normalization, because strings that are
    /// canonically equivalent are equal.
    case folded(String)
    case exact([UInt8])
  }

  private struct Use {
    var path: [UInt8]
    var isDirectory: Bool
  }

  private let permitsSimilarNames: Bool
  /// A name of a few hundred bytes can need a hundred directories.
  private let countMax: Int
  private var uses: [Key: Use] = [:]
  private var latestParent: ArraySlice<String> = []

  init(_ limits: SSZipArchiveLimits) {
    (permitsSimilarNames, countMax) = (limits.permitsSimilarNames, limits.entryCountMax)
  }

  mutating func add(_ components: [String], isDirectory: Bool, named name: String) throws(ArchiveRefusal) {
    if components.isEmpty { return }
    let parent = components.dropLast()
    if !(parent.count == latestParent.count && zip(parent, latestParent).allSatisfy { $0.utf8.elementsEqual($1.utf8) })
    {
      for count in 1..<max(components.count, 1) {
        try use(components.prefix(count), isDirectory: true, named: name)
      }
      latestParent = parent
    }
    try use(components[...], isDirectory: isDirectory, named: name)
  }

  private mutating func use(
    _ components: ArraySlice<String>, isDirectory: Bool, named name: String
  ) throws(ArchiveRefusal) {
    let path = components.joined(separator: "/")
    let bytes = Array(path.utf8)
    // Upper case first: the upper case of `ß` is `SS`.
    let key: Key = permitsSimilarNames ? .exact(bytes) : .folded(path.uppercased().lowercased())
    guard let use = uses[key] else {
      if uses.count >= countMax { throw ArchiveRefusal(.tooManyEntries) }
      uses[key] = Use(path: bytes, isDirectory: isDirectory)
      return
    }
    guard use.isDirectory, isDirectory, use.path == bytes else { throw ArchiveRefusal(.conflictingNames, name) }
  }
}

extension UInt64 {
  /// The sum, or the greatest number if it does not fit.
  package func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
