import LarkspurBytes
import LarkspurHTTP

/// The facts of a world of downloads that must hold at any time, kept outside of all programs.
struct DownloadLedger {
  let versions: SimulatedVersions
  /// The versions that the name may have: the one of the plan's checksum, or any that a server has had.
  let allowed: Set<Int>
  /// Whether a server that sends wrong bytes under the right tag cannot be found out.
  let isBlind: Bool
  /// Whether nothing but a hash shows that two servers have different versions.
  let mayMix: Bool
  /// The file of the destination before the download.
  private(set) var earlier: [UInt8]?
  private(set) var complaints: [String] = []
  /// The versions of a part's earlier records, by its inode. A later plan may leave out a server of which the part has
  /// bytes, and its record names the servers of that plan only.
  private var inherited: [UInt64: Set<Int>] = [:]
  /// The versions that servers have sent with a validator, by the address and the validator.
  private var sent: [String: Set<Int>] = [:]

  init(_ setting: DownloadSetting, earlier: [UInt8]?) {
    (versions, allowed, isBlind, mayMix) = (setting.versions, setting.allowed, setting.isBlind, setting.mayMix)
    self.earlier = earlier
  }

  mutating func complain(_ text: String) { complaints.append(text) }

  mutating func sent(_ response: SimulatedMirror.Response, by mirror: SimulatedMirror) {
    // A response to `If-Range` may leave out the validator.
    let named = mirror.tag(of: mirror.version).map { [$0.value] } ?? []
    for value in named + response.values("etag") + response.values("last-modified") {
      sent["\(mirror.url) \(value)", default: []].insert(mirror.version)
      if response.isLie { sent["\(mirror.url) \(value)", default: []].insert(SimulatedVersions.lie) }
    }
  }

  // MARK: - The name

  /// Checks the file of the destination, which is `nil` if there is none.
  mutating func check(name bytes: [UInt8]?, _ occasion: String) {
    if bytes == earlier { return }
    guard let bytes else { return complain("the earlier file is gone (\(occasion))") }
    if isBlind || allowed.contains(where: { versions.bytes(of: $0) == bytes }) { return }
    let fits = allowed.sorted().map { version in
      let right = versions.bytes(of: version)
      let wrong = zip(bytes, right).enumerated().first { $1.0 != $1.1 }
      return "version \(version) of \(right.count) from byte \(wrong?.offset ?? min(bytes.count, right.count)) on"
    }
    complain("the name has \(bytes.count) bytes that are wrong (\(occasion)): \(fits.joined(separator: ", "))")
  }

  /// A program reports success.
  mutating func succeeded(name bytes: [UInt8]?, names: [String], destination: String) {
    check(name: bytes, "success")
    let isWhole = bytes.map { bytes in isBlind || allowed.contains { versions.bytes(of: $0) == bytes } }
    if isWhole != true { complain("success without the file") }
    let left = names.filter { $0 != destination }
    if !left.isEmpty { complain("\(left) are left after success") }
    earlier = bytes
  }

  // MARK: - The record

  /// A part was emptied.
  mutating func discarded(part inode: UInt64) { inherited[inode] = nil }

  /// Checks that a record on the disk names right bytes only.
  ///
  /// - Parameter part: The bytes of the file that the record names, or `nil` if there is no such file.
  mutating func check(_ record: DownloadRecord, part: [UInt8]?, _ occasion: String) {
    guard let part else { return complain("the record has no part (\(occasion))") }
    guard record.kept.end <= part.count else {
      return complain("the record names \(record.kept.end) bytes, and the part has \(part.count) (\(occasion))")
    }
    let named = record.sources.map { sent["\($0.url) \($0.validator)"] ?? [] }
    let inherited = named.reduce(inherited[record.inode] ?? []) { $0.union($1) }
    self.inherited[record.inode] = inherited
    let hasLie = inherited.contains(SimulatedVersions.lie)
    // Servers with equal sizes count as equal: then a hash finds in the end that they are not.
    let all = mayMix ? inherited : named.reduce(Set(versions.sizes.indices)) { $0.intersection($1) }
    let groups = mayMix ? [all.subtracting([SimulatedVersions.lie]).sorted()] : all.sorted().map { [$0] }
    let fits = groups.contains { group in
      record.kept.ranges.allSatisfy { range in
        let possible = (group + (hasLie ? [SimulatedVersions.lie] : [])).map { versions.bytes(range, of: $0) }
        return possible.contains { part[range].elementsEqual($0) }
          || possible.count > 1
            && range.allSatisfy { byte in possible.contains { $0[byte - range.lowerBound] == part[byte] } }
      }
    }
    if !fits, !record.kept.isEmpty {
      complain("the record of versions \(groups) names wrong bytes in \(record.kept.ranges) (\(occasion))")
    }
  }
}

/// The bytes that one program has fetched and may not fetch again.
struct DownloadWatch {
  private(set) var held: ByteRanges
  /// The bytes that were held when a lane began.
  private var before: [Int: ByteRanges] = [:]
  private(set) var complaint: String?

  init(_ record: DownloadRecord?) { held = record?.kept ?? ByteRanges() }

  mutating func began(_ lane: Int) { before[lane] = held }

  /// A lane writes bytes. A slow tail is fetched twice, by lanes that began before the bytes were there.
  mutating func wrote(_ range: Range<Int>, _ lane: Int) {
    // The bytes of the range that were held when the lane began, and still are.
    var again = ByteRanges()
    again.insert(range)
    for gap in held.gaps(in: range) + (before[lane] ?? ByteRanges()).gaps(in: range) { again.remove(gap) }
    if !again.isEmpty, complaint == nil { complaint = "lane \(lane) fetches \(again.ranges) again" }
    held.insert(range)
  }

  /// All bytes are of no use any more.
  mutating func discarded() { held = ByteRanges() }

  /// Bytes have wrong hashes.
  mutating func limit(to right: ByteRanges) { for gap in right.gaps(in: 0..<held.end) { held.remove(gap) } }

  /// Returns the number of bytes that the next program has to fetch again.
  func lost(keeping record: DownloadRecord?) -> Int {
    var lost = held
    if let record { lost.subtract(record.kept) }
    return lost.count
  }
}
