import CAllocations
import Testing
import ZipArchive

@Suite struct ArchivePlanTests {
  private func record(_ name: String, mode: UInt32 = 0o100644, size: UInt64 = 0) -> EntryRecord {
    var record = EntryRecord(name: Array(name.utf8))
    record.isUTF8 = true
    record.attributes = mode << 16
    record.size = size
    record.compressedSize = size
    return record
  }

  private func plan(
    _ records: [EntryRecord], similar: Bool = false, archiveSize: UInt64 = 1 << 40
  ) -> Result<ArchivePlan, ArchiveRefusal> {
    do throws(ArchiveRefusal) {
      var limits = SSZipArchiveLimits()
      limits.permitsSimilarNames = similar
      limits.entryCountMax = 7
      return .success(try ArchivePlan(records, archiveSize: archiveSize, limits))
    } catch {
      return .failure(error)
    }
  }

  private func reason(_ result: Result<ArchivePlan, ArchiveRefusal>) -> ArchiveRefusal.Reason? {
    if case .failure(let refusal) = result { refusal.reason } else { nil }
  }

  @Test func kinds() throws {
    let plan = try plan([
      record("a"), record("d/"), record("e", mode: 0o040755), record("l", mode: 0o120777, size: 3),
      record("m", mode: 0), record("__MACOSX/._a"),
    ]).get()
    #expect(plan.entries.map(\.kind) == [.file, .directory, .directory, .link, .file, .file])
    #expect(plan.entries.map(\.isWanted) == [true, true, true, true, true, false])
    #expect(plan.totalSize == 3)
  }

  @Test(arguments: [0o010644, 0o020644, 0o060644, 0o140644, 0o160000] as [UInt32]) func specialFiles(mode: UInt32) {
    #expect(reason(plan([record("a", mode: mode)])) == .specialFile)
  }

  @Test func malformedEntries() {
    #expect(reason(plan([record("a/", size: 1)])) == .malformedEntry)
    #expect(reason(plan([record("a", mode: 0o120777)])) == .malformedEntry)
    #expect(reason(plan([record("a", mode: 0o120777, size: 4096)])) == .malformedEntry)
    #expect(reason(plan([record(".", mode: 0o120777, size: 4)])) == .malformedEntry)
  }

  @Test(arguments: [
    (["a", "a"], true), (["a", "A"], false), (["straße", "STRASSE"], false), (["ä", "a\u{308}"], false),
    (["d/a", "D/b"], false), (["a", "a/b"], true), (["a/b", "a"], true), (["a/", "a"], true), (["a", "a\\b"], true),
    (["k", "\u{212A}"], false), (["d/A/x", "d/a/y"], false), (["a/b", "c", "A/d"], false),
  ])
  func conflicts(names: [String], evenIfSimilarNamesArePermitted: Bool) {
    let records = names.map { record($0) }
    #expect(reason(plan(records)) == .conflictingNames)
    #expect((reason(plan(records, similar: true)) == .conflictingNames) == evenIfSimilarNamesArePermitted)
  }

  @Test(arguments: [["a/", "a/"], ["a/b", "a/", "a/c"], ["a/b/c", "a/", "a/b/"], ["./", "a"], ["a", "b/a"]])
  func noConflicts(names: [String]) {
    #expect(reason(plan(names.map { record($0) })) == nil)
  }

  /// Directories without entries of their own count.
  @Test func manyDirectories() {
    #expect(reason(plan([record("a/b/c/d/e/f/g")])) == nil)
    #expect(reason(plan([record("a/b/c/d/e/f/g/h")])) == .tooManyEntries)
    #expect(reason(plan([record("a/b/c"), record("a/b/d"), record("e/f")])) == nil)
    #expect(reason(plan([record("a/b/c"), record("d/e/f"), record("g"), record("h")])) == .tooManyEntries)
  }

  /// Similar names are found below different parents, and equal names below different parents do not conflict.
  @Test func parents() {
    #expect(reason(plan(["a/x/y", "b/x/y", "a/x/z"].map { record($0) })) == nil)
    #expect(reason(plan(["a/x/y", "b/x/y", "a/x/Y"].map { record($0) })) == .conflictingNames)
    #expect(reason(plan(["a/x/y", "b/c", "a/X/z"].map { record($0) })) == .conflictingNames)
    #expect(reason(plan(["a/b", "ab"].map { record($0) })) == nil)
  }

  /// Entries that alternate between deep directories cost no more than their own names do: twice the depth costs twice
  /// the work, and not four times.
  @Test func deepDirectories() throws {
    let (half, whole) = (try allocations(depth: 49), try allocations(depth: 98))
    #expect(2 * whole < 5 * half || !larkspur_allocations_are_counted(), "\(half) and \(whole)")
  }

  /// The number of allocations for the plan of many entries in two directories.
  private func allocations(depth: Int) throws -> UInt64 {
    let parents = ["a", "b"].map { top in top + String(repeating: "/d", count: depth) }
    let records = (0..<500).map { record("\(parents[$0 % 2])/\($0)") }
    var limits = SSZipArchiveLimits()
    limits.entryCountMax = 2 * (depth + 1) + 500
    let before = larkspur_allocations()
    let plan = try ArchivePlan(records, archiveSize: 1 << 40, limits)
    let count = larkspur_allocations() - before
    #expect(plan.entries.count == 500)
    limits.entryCountMax -= 1
    #expect(throws: ArchiveRefusal(.tooManyEntries)) { try ArchivePlan(records, archiveSize: 1 << 40, limits) }
    return count
  }

  @Test func overlaps() {
    let records = [record("a", size: 100), record("b", size: 100)]
    // Two headers of 30 and 46 bytes for each entry.
    #expect(reason(plan(records, archiveSize: 352)) == nil)
    #expect(reason(plan(records, archiveSize: 351)) == .overlappingEntries)
    #expect(reason(plan([record("a", size: .max), record("b", size: .max)])) == .overlappingEntries)
  }

  @Test func permissions() {
    #expect(record("a", mode: 0o104755).permissions == 0o755)
    #expect(record("a", mode: 0o102777).permissions == 0o755)
    #expect(record("a", mode: 0o100662).permissions == 0o640)
    #expect(record("a", mode: 0).permissions == nil)
  }

  @Test func extendedTimestamps() {
    func time(_ bytes: [UInt8]) -> Double? { EntryTime.extended.modified(in: bytes) }
    #expect(time([1, 0x10, 0x32, 0x54, 0x66]) == 0x6654_3210)
    #expect(time([3, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4]) == -1)
    #expect(time([2, 0x10, 0x32, 0x54, 0x66]) == nil)
    #expect(time([1, 0x10, 0x32, 0x54]) == nil)
    #expect(time([]) == nil)
  }
}

@Suite struct ExtractionMeterTests {
  @Test func entries() throws {
    var limits = SSZipArchiveLimits()
    limits.entryCountMax = 3
    var meter = ExtractionMeter(limits, archiveSize: 1)
    try meter.addEntries(2)
    try meter.addEntries(1)
    #expect(throws: ArchiveRefusal(.tooManyEntries)) { try meter.addEntries(1) }
    #expect(throws: ArchiveRefusal(.tooManyEntries)) { try meter.addEntries(.max) }
  }

  @Test func bytes() throws {
    var limits = SSZipArchiveLimits()
    (limits.totalSizeMax, limits.expansionMax, limits.bytesOutAlways) = (1000, 10, 50)
    // The ratio limits a small archive, and the total a large one.
    var small = ExtractionMeter(limits, archiveSize: 4)
    try small.add(50, "a")
    #expect(throws: ArchiveRefusal(.tooCompressed, "a")) { try small.add(1, "a") }
    var larger = ExtractionMeter(limits, archiveSize: 10)
    try larger.add(100, "a")
    #expect(throws: ArchiveRefusal(.tooCompressed, "b")) { try larger.add(1, "b") }
    var large = ExtractionMeter(limits, archiveSize: .max)
    try large.add(1000, "a")
    #expect(throws: ArchiveRefusal(.tooLarge, "b")) { try large.add(1, "b") }
    #expect(throws: ArchiveRefusal(.tooLarge, nil)) { try large.check(.max) }
    #expect(large.bytesOut == 1000)
  }
}
