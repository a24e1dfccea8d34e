import TestKit
import Testing
import ZipArchive

@Suite struct WritingPlanTests {
  private var limits = SSZipArchiveLimits()

  /// Adds entries. A name with a slash at its end is that of a directory, and one with an arrow that of a link.
  private func result(_ names: [String], isReplacing: Bool = true) -> ArchiveRefusal.Reason? {
    var plan = WritingPlan(limits)
    do throws(ArchiveRefusal) {
      for name in names { _ = try add(name, to: &plan, isReplacing: isReplacing) }
      return nil
    } catch {
      return error.reason
    }
  }

  private func add(
    _ name: String, to plan: inout WritingPlan, isReplacing: Bool = true
  ) throws(ArchiveRefusal) -> EntryRecord {
    let parts = name.split(separator: ">", omittingEmptySubsequences: false).map(String.init)
    let target = parts.count > 1 ? parts[1] : nil
    let mode: UInt32 = target != nil ? 0o120777 : name.hasSuffix("/") ? 0o040755 : 0o100644
    let size = UInt64(target?.utf8.count ?? 0)
    let written = try plan.add(parts[0], mode: mode, size: size, linkTarget: target, isReplacing: isReplacing)
    var record = EntryRecord(name: Array(written.utf8))
    (record.isUTF8, record.attributes, record.size) = (true, mode << 16, size)
    return record
  }

  @Test(arguments: [
    ["README", "readme"], ["ä", "a\u{308}"], ["Docs/", "docs/"], ["A/x", "a/y"], ["d", "d/"], ["d", "d/x"],
    ["d/x", "d"], ["l>t", "l/x"], ["a//b", "A/b"],
  ])
  func conflictingNames(names: [String]) { #expect(result(names) == .conflictingNames) }

  @Test(arguments: [["a", "a"], ["a//b", "./a/b"], ["d/", "d/x", "d/"], ["a", "a>t"], ["a>t", "a"]])
  func replacedNames(names: [String]) {
    #expect(result(names) == nil)
  }

  @Test func filesOfOneName() {
    #expect(result(["a", "a"], isReplacing: false) == .conflictingNames)
    #expect(result(["a", "b"], isReplacing: false) == nil)
  }

  @Test(
    arguments: [
      ("..", .nameLeavesDestination), ("c:x", .nameLeavesDestination), ("a\\b", .nameHasBackslash),
      ("..\\a", .nameHasBackslash), ("./c:", .nameLeavesDestination), ("a\0", .unreadableName), ("", .unreadableName),
      ("./", .unreadableName),
      ("__MACOSX/a", .neverExtracted), ("l>/etc", .linkLeavesDestination), ("l>../x", .linkLeavesDestination),
      ("d/l>../../x", .linkLeavesDestination), ("l>a/..", .linkLeavesDestination), ("l>", .malformedEntry),
      (String(repeating: "d/", count: 101), .nameTooLong), (String(repeating: "n", count: 256), .nameTooLong),
    ] as [(String, ArchiveRefusal.Reason)])
  func refusedEntries(name: String, reason: ArchiveRefusal.Reason) { #expect(result([name]) == reason) }

  @Test(arguments: ["l>d", "l>.", "d/l>../x", "d/l>..", "l>none/b"])
  func links(name: String) { #expect(result([name]) == nil) }

  @Test(arguments: [0o010644, 0o020644, 0o060644, 0o140644] as [UInt32]) func specialFiles(mode: UInt32) {
    var plan = WritingPlan(limits)
    #expect(throws: ArchiveRefusal(.specialFile, "a")) { _ = try plan.add("a", mode: mode, size: 0) }
  }

  /// A file is no directory, even if it is empty.
  @Test(arguments: [0, 1] as [UInt64]) func filesWithNamesOfDirectories(size: UInt64) {
    var plan = WritingPlan(limits)
    #expect(throws: ArchiveRefusal(.malformedEntry, "a/")) { _ = try plan.add("a/", mode: 0o100644, size: size) }
  }

  @Test func limitsOfTheExtraction() throws {
    var limits = SSZipArchiveLimits()
    (limits.entryCountMax, limits.totalSizeMax, limits.expansionMax, limits.bytesOutAlways) = (3, 1000, 10, 100)
    var plan = WritingPlan(limits)
    _ = try plan.add("a", mode: 0o100644, size: 900)
    #expect(throws: ArchiveRefusal(.tooLarge, "b")) { _ = try plan.add("b", mode: 0o100644, size: 101) }
    // The size of a replaced entry does not count.
    _ = try plan.add("a", mode: 0o100644, size: 899)
    _ = try plan.add("b", mode: 0o100644, size: 101)
    #expect(throws: ArchiveRefusal(.tooLarge, "a")) { _ = try plan.add("a", mode: 0o100644, size: 900) }
    #expect(throws: ArchiveRefusal(.tooManyEntries)) { _ = try plan.add("d/c", mode: 0o100644, size: 0) }
    try plan.check(archiveSize: 100)
    #expect(throws: ArchiveRefusal(.tooCompressed)) { try plan.check(archiveSize: 99) }
  }

  @Test func similarNames() {
    var suite = self
    suite.limits.permitsSimilarNames = true
    #expect(suite.result(["README", "readme", "ä", "a\u{308}", "A/x", "a/y"]) == nil)
    #expect(suite.result(["a", "a/x"]) == .conflictingNames)
  }

  /// An archive of other programs has names that libzip does not find as they are written here.
  @Test func existingEntries() throws {
    var plan = WritingPlan(limits)
    for (name, host, isUTF8) in [("a", 3, false), ("b\\c", 0, false), ("ä", 0, false), ("ö", 3, true)] {
      var record = EntryRecord(name: Array(name.utf8))
      (record.host, record.isUTF8) = (UInt8(host), isUTF8)
      try plan.addExisting(record)
    }
    for name in ["a", "ö", "ä"] { _ = try plan.add(name, mode: 0o100644, size: 0) }
    for name in ["A", "b/c", "├ñ"] {
      #expect(throws: ArchiveRefusal(.conflictingNames, name)) { _ = try plan.add(name, mode: 0o100644, size: 0) }
    }
  }

  /// Whatever is written, in any order, can be extracted.
  @Test func whatIsWrittenIsExtracted() {
    let parts = ["a", "A", "ä", "a\u{308}", "b", ".", "..", "", "__MACOSX", "c:", "d\\e", "ß", "SS", "l>b", "l>../a"]
    var random = SeededGenerator(seed: 17)
    var accepted = 0
    for round in 0..<2000 {
      var plan = WritingPlan(limits)
      var records: [[UInt8]: EntryRecord] = [:]
      for _ in 0..<6 {
        let name = (0..<Int.random(in: 1...3, using: &random)).compactMap { _ in parts.randomElement(using: &random) }
          .joined(separator: "/")
        guard let record = try? add(name, to: &plan) else { continue }
        records[record.name] = record
        accepted += 1
      }
      #expect(throws: Never.self, "\(round)") {
        try ArchivePlan(Array(records.values), archiveSize: 1 << 40, limits)
      }
    }
    #expect(accepted > 1000)
  }
}
