import ZipArchive

/// Checks what becomes of the names, kinds and link targets of a zip archive's entries.
///
/// An input is lines, one for each entry. The first byte of a line has flags (bit 0: the name is UTF-8; bit 1: from
/// MS-DOS; bits 2 and 3: the file type; bit 4: the line is a link's target). The rest is the name, or the target.
package enum ArchiveNameOracle {
  /// - Returns: What is wrong, or `nil`.
  package static func finding(in input: [UInt8]) -> String? {
    var records: [EntryRecord] = []
    for line in input.split(separator: 10) {
      let (flags, name) = (line[line.startIndex], Array(line.dropFirst()))
      if flags & 16 != 0 {
        if let problem = linkProblem(String(decoding: name, as: UTF8.self)) { return problem }
        continue
      }
      var record = EntryRecord(name: name)
      record.isUTF8 = flags & 1 != 0
      record.host = flags & 2 != 0 ? 0 : 3
      record.attributes = [0, 0o100644, 0o040755, 0o120777][Int(flags >> 2 & 3)] << 16
      record.size = flags >> 2 & 3 == 3 ? 1 : 0
      record.compressedSize = record.size
      records.append(record)
    }
    for permitsSimilarNames in [false, true] {
      if let problem = planProblem(records, permitsSimilarNames) { return problem }
    }
    return writingProblem(records)
  }

  /// What is written can be extracted.
  private static func writingProblem(_ records: [EntryRecord]) -> String? {
    var plan = WritingPlan(SSZipArchiveLimits())
    var written: [[UInt8]: EntryRecord] = [:]
    for record in records {
      guard let name = try? EntryName.text(record.name, isUTF8: record.isUTF8, host: record.host),
        let accepted = try? plan.add(name, mode: record.attributes >> 16, size: record.size)
      else { continue }
      var entry = record
      (entry.name, entry.isUTF8, entry.host) = (Array(accepted.utf8), true, 3)
      written[entry.name] = entry
    }
    let isExtracted = (try? ArchivePlan(Array(written.values), archiveSize: 1 << 30, SSZipArchiveLimits())) != nil
    return isExtracted ? nil : "entries that are written and not extracted"
  }

  private static func planProblem(_ records: [EntryRecord], _ permitsSimilarNames: Bool) -> String? {
    var limits = SSZipArchiveLimits()
    limits.permitsSimilarNames = permitsSimilarNames
    limits.entryCountMax = 500
    guard let plan = try? ArchivePlan(records, archiveSize: 1 << 30, limits) else { return nil }
    if plan.entries.count != records.count { return "\(plan.entries.count) entries of \(records.count)" }
    // What a naive extraction into memory has at each path.
    var tree: [[UInt8]: EntryRecord.Kind] = [:]
    for entry in plan.entries {
      for part in entry.path where !isSafe(part) { return "the part \(Array(part.utf8)) of \(entry.name)" }
      for count in 0..<entry.path.count {
        let path = Array(entry.path.prefix(count + 1).joined(separator: "/").utf8)
        let kind = count + 1 == entry.path.count ? entry.kind : .directory
        if let found = tree[path], found != .directory || kind != .directory { return "\(entry.name) twice" }
        tree[path] = kind
      }
    }
    if tree.count > limits.entryCountMax { return "\(tree.count) names" }
    if permitsSimilarNames { return nil }
    let folded = Set(tree.keys.map { String(decoding: $0, as: UTF8.self).uppercased().lowercased() })
    return folded.count == tree.count ? nil : "similar names"
  }

  private static func isSafe(_ part: String) -> Bool {
    let bytes = Array(part.utf8)
    return !bytes.isEmpty && bytes.count <= 255 && bytes != [46] && bytes != [46, 46]
      && !bytes.contains { $0 == 0 || $0 == 47 || $0 == 92 }
  }

  /// Follows an accepted target part by part, as the kernel does without other links.
  private static func linkProblem(_ target: String) -> String? {
    let room = ["a", "b"]
    guard LinkTarget.stays(target, from: room + ["c"], within: room) else { return nil }
    var path = target.utf8.first == 47 ? [] : room + ["c"]
    for part in target.utf8.split(separator: 47) {
      let part = String(decoding: part, as: UTF8.self)
      if part == "." { continue }
      if part == ".." { _ = path.popLast() } else { path.append(part) }
    }
    return path.starts(with: room) ? nil : "the target \(Array(target.utf8)) leads to \(path)"
  }
}
