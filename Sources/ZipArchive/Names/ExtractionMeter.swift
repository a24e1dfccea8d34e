/// Counts what an extraction writes, nested archives included, and ends it at a limit.
package struct ExtractionMeter: Sendable {
  private let limits: SSZipArchiveLimits
  /// The size in bytes of the archive that was given to the extraction.
  private let archiveSize: UInt64
  private var entryCount = 0
  package private(set) var bytesOut: UInt64 = 0

  package init(_ limits: SSZipArchiveLimits, archiveSize: UInt64) {
    self.limits = limits
    self.archiveSize = archiveSize
  }

  /// Counts the entries of an archive.
  package mutating func addEntries(_ count: Int) throws(ArchiveRefusal) {
    let (sum, overflows) = entryCount.addingReportingOverflow(count)
    if overflows || sum > limits.entryCountMax { throw ArchiveRefusal(.tooManyEntries) }
    entryCount = sum
  }

  /// Throws if so many bytes more would exceed a limit.
  package func check(_ count: UInt64, _ entry: String? = nil) throws(ArchiveRefusal) {
    let sum = bytesOut.addingSaturated(count)
    if sum > limits.totalSizeMax { throw ArchiveRefusal(.tooLarge, entry) }
    if sum <= limits.bytesOutAlways { return }
    let (most, overflows) = archiveSize.multipliedReportingOverflow(by: limits.expansionMax)
    if !overflows, sum > most { throw ArchiveRefusal(.tooCompressed, entry) }
  }

  /// Counts bytes of contents.
  package mutating func add(_ count: Int, _ entry: String) throws(ArchiveRefusal) {
    let count = UInt64(clamping: count)
    try check(count, entry)
    bytesOut = bytesOut.addingSaturated(count)
  }
}
