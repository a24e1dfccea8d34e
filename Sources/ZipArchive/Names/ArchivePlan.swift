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

    /// Checks one record without regard to others.
    package init(_ record: EntryRecord, index: Int) throws(ArchiveRefusal) {
      name = try EntryName.text(record.name, isUTF8: record.isUTF8, host: record.host)
      let path = try EntryPath(name)
      kind = try record.kind(of: path, named: name)
      isWanted = path.components.first != "__MACOSX"
      (self.index, self.path) = (index, path.components)
    }
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
    let entry = try Entry(record, index: entries.count)
    try names.add(entry)
    entries.append(entry)
    totalSize = totalSize.addingSaturated(record.size)
    // Each entry has two headers: 30 bytes before its contents, and 46 in the central directory.
    occupied = occupied.addingSaturated(record.compressedSize).addingSaturated(76)
    if occupied > archiveSize { throw ArchiveRefusal(.overlappingEntries, entry.name) }
  }
}

extension UInt64 {
  /// The sum, or the greatest number if it does not fit.
  package func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
