/// The entries of an archive that is being written, under the rules of the extraction: what is written with some limits
/// can be extracted with these limits.
package struct WritingPlan: Sendable {
  private let limits: SSZipArchiveLimits
  private var names: NameTable
  private var meter: ExtractionMeter
  /// The sizes in bytes of the files and links that an entry of their name replaces, by the bytes of the names.
  private var sizes: [[UInt8]: UInt64] = [:]
  private var totalSize: UInt64 = 0

  /// Creates a plan without entries.
  package init(_ limits: SSZipArchiveLimits) {
    self.limits = limits
    names = NameTable(limits)
    // The size of the archive is known at the end only.
    meter = ExtractionMeter(limits, archiveSize: .max)
  }

  /// Adds an entry of the archive that others are appended to.
  package mutating func addExisting(_ record: EntryRecord) throws(ArchiveRefusal) {
    let entry = try ArchivePlan.Entry(record, index: 0)
    // libzip finds an entry by its name in the archive. For other names than these it can differ from the one here.
    let isReplaceable = entry.kind != .directory && (record.isUTF8 || record.name.allSatisfy { $0 < 128 })
    try add(entry, record.size, key: isReplaceable ? record.name : nil, isReplacing: false)
  }

  /// Adds an entry.
  ///
  /// - Parameters:
  ///   - name: The name, with `/` between directories.
  ///   - mode: `st_mode`, with the type.
  ///   - size: The size of the contents in bytes.
  ///   - linkTarget: The contents of a symbolic link.
  ///   - isReplacing: Whether the entry may replace a file or link of its name.
  /// - Returns: The name to write.
  package mutating func add(
    _ name: String, mode: UInt32, size: UInt64, linkTarget: String? = nil, isReplacing: Bool = true
  ) throws(ArchiveRefusal) -> String {
    if name.utf8.contains(UInt8(ascii: "\\")) { throw ArchiveRefusal(.nameHasBackslash, name) }
    let path = try EntryPath(name)
    let written = path.components.joined(separator: "/")
    // The name that is written is the one to check: `./c:` is not absolute, and `c:` is.
    var record = EntryRecord(name: Array(written.utf8))
    (record.isUTF8, record.attributes, record.size) = (true, mode << 16, size)
    let entry = try ArchivePlan.Entry(record, index: 0)
    let isDirectory = entry.kind == .directory
    // A file must not have the name of a directory.
    if path.isDirectory, !isDirectory { throw ArchiveRefusal(.malformedEntry, name) }
    if !entry.isWanted { throw ArchiveRefusal(.neverExtracted, name) }
    if let linkTarget, !LinkTarget.staysInAnyDestination(linkTarget, from: entry.path.dropLast()) {
      throw ArchiveRefusal(.linkLeavesDestination, name)
    }
    try add(entry, size, key: isDirectory ? nil : Array(written.utf8), isReplacing: isReplacing)
    return written
  }

  /// - Parameter key: The key in `sizes`, or `nil` for an entry that cannot be replaced.
  private mutating func add(
    _ entry: ArchivePlan.Entry, _ size: UInt64, key: [UInt8]?, isReplacing: Bool
  ) throws(ArchiveRefusal) {
    let replaced = isReplacing ? key.flatMap { sizes[$0] } : nil
    let total = (totalSize - (replaced ?? 0)).addingSaturated(size)
    try meter.check(total, entry.name)
    if replaced == nil {
      try names.add(entry)
      try meter.addEntries(1)
    }
    if let key { sizes[key] = size }
    totalSize = total
  }

  /// Checks the whole archive.
  ///
  /// - Parameter archiveSize: Its size in bytes.
  package func check(archiveSize: UInt64) throws(ArchiveRefusal) {
    try ExtractionMeter(limits, archiveSize: archiveSize).check(totalSize)
  }
}
