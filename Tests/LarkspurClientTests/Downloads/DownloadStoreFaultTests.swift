import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurSimulation
import Testing

@testable import LarkspurEngine

/// A store whose disk fails at each call, and whose process or machine ends there.
///
/// After each end the destination has its earlier content or the whole of one version, and the record names no byte that is
/// not there. The next download then completes, and leaves nothing beside the file.
@Suite struct DownloadStoreFaultTests {
  /// What lies in the directory at the beginning.
  enum Start: CaseIterable, Sendable { case nothing, earlierFile, sameVersion, otherVersion, wholePart, strayRecord }

  /// A version of the resource, which has a URL of its own.
  struct Version: Hashable, Sendable {
    let url: String
    let bytes: [UInt8]

    static let wanted = Version(url: "http://example.org/wanted", bytes: Array(1...13))
    static let other = Version(url: "http://example.org/other", bytes: Array(101...113))
  }

  private static let name = "name"
  private static let earlier: [UInt8] = [9, 9, 9]
  private static let pieceBytes = 5

  private static func record(_ version: Version, _ kept: ByteRanges, _ inode: UInt64) -> DownloadRecord {
    DownloadRecord(
      sources: [.init(url: version.url, validator: "\"v\"")], total: version.bytes.count, coding: nil, kept: kept,
      inode: inode)
  }

  private static func open(_ disk: ScriptedDisk, _ version: Version, _ hashes: DownloadHashes) throws -> DownloadStore {
    try DownloadStore(disk, name, urls: [version.url], hashes, bytesToLeave: 0)
  }

  /// Downloads a version, piece by piece from the end, as the machine would.
  ///
  /// - Parameters:
  ///   - isRecorded: Whether the server has validators.
  ///   - pieces: Maximum number of pieces: the process stops after them.
  private static func download(
    _ version: Version, to disk: ScriptedDisk, _ hashes: DownloadHashes = DownloadHashes(), isRecorded: Bool = true,
    pieces: Int = .max
  ) throws {
    let store = try open(disk, version, hashes)
    defer { store.close() }
    guard store.completeCount == nil else { return }
    var kept = store.record?.kept ?? ByteRanges()
    if let record = store.record, record.sources.first?.url != version.url {
      try store.discard()
      kept = ByteRanges()
    }
    let total = version.bytes.count
    try store.reserve(total)
    var count = 0
    for gap in kept.gaps(in: 0..<total).reversed() {
      var end = gap.upperBound
      while end > gap.lowerBound, count < pieces {
        let piece = max(gap.lowerBound, end - pieceBytes)..<end
        try store.write(version.bytes[piece], at: piece.lowerBound)
        kept.insert(piece)
        end = piece.lowerBound
        count += 1
        if isRecorded, count % 2 == 0 { try store.checkpoint(record(version, kept, store.inode)) }
      }
    }
    guard kept.contains(0..<total) else { return }
    if isRecorded, count > 0 { try store.checkpoint(record(version, kept, store.inode)) }
    #expect(store.verify(total: total) == .fits)
    try store.install(total: total)
  }

  private static func disk(_ start: Start) throws -> ScriptedDisk {
    let disk = ScriptedDisk(keepsCalls: false)
    switch start {
    case .nothing: break
    case .earlierFile: disk.put(name, earlier)
    case .sameVersion:
      disk.put(name, earlier)
      try download(.wanted, to: disk, pieces: 2)
    case .otherVersion: try download(.other, to: disk, pieces: 2)
    case .wholePart:
      disk.put(DownloadStore.partName(name), Version.other.bytes)
      let inode = try #require(try disk.facts(DownloadStore.partName(name))?.inode)
      let kept = try #require(ByteRanges([0..<Version.other.bytes.count]))
      disk.put(DownloadStore.recordName(name), try #require(record(.other, kept, inode).encoded()))
      disk.put(DownloadStore.recordName(name) + ".new", [1])
    case .strayRecord:
      // The next node is the new part's.
      let kept = try #require(ByteRanges([0..<Version.wanted.bytes.count]))
      disk.put(DownloadStore.recordName(name), try #require(record(.wanted, kept, 2).encoded()))
    }
    return disk
  }

  /// Checks what an end of the process has left.
  private static func check(_ disk: ScriptedDisk, _ start: Start, _ place: Comment) {
    let destination = disk.bytes(name)
    let before = start == .earlierFile || start == .sameVersion ? earlier : nil
    #expect(destination == before || destination == Version.wanted.bytes, place)
    guard let record = disk.bytes(DownloadStore.recordName(name)).flatMap({ DownloadRecord(file: $0) }),
      let version = [Version.wanted, .other].first(where: { $0.url == record.sources.first?.url }),
      let part = disk.bytes(DownloadStore.partName(name)),
      (try? disk.facts(DownloadStore.partName(name))?.inode) == record.inode
    else { return }
    // A part that is shorter than its record is no part.
    guard part.count >= record.kept.end else {
      #expect(start == .strayRecord, place)
      return
    }
    for range in record.kept.ranges { #expect(part[range] == version.bytes[range], place) }
  }

  private static func complete(_ disk: ScriptedDisk, _ place: Comment) throws {
    try download(.wanted, to: disk)
    #expect(disk.bytes(name) == Version.wanted.bytes, place)
    #expect(disk.names == [name], place)
  }

  @Test(arguments: Start.allCases, [true, false]) func endsAtEachCall(start: Start, isRecorded: Bool) throws {
    var step = 0
    while true {
      let place: Comment = "\(start), step \(step)"
      let disk = try Self.disk(start)
      disk.fail(after: step)
      let isDone = (try? Self.download(.wanted, to: disk, isRecorded: isRecorded)) != nil
      for left in [disk.afterKill()] + disk.afterPowerLoss() {
        Self.check(left, start, place)
        try Self.complete(left, place)
      }
      if isDone { break }
      step += 1
      try #require(step < 500)
    }
    #expect(step > 15)
  }

  /// A second loss of power, while the next process repairs what the first has left.
  @Test(arguments: Start.allCases) func endsTwice(start: Start) throws {
    for step in stride(from: 0, to: 60, by: 3) {
      let disk = try Self.disk(start)
      disk.fail(after: step)
      try? Self.download(.wanted, to: disk)
      let lefts = disk.afterPowerLoss()
      for second in stride(from: step / 3 % 3, to: 12, by: 3) {
        let left = lefts[(step + second) % lefts.count].afterKill()
        left.fail(after: second)
        try? Self.download(.wanted, to: left)
        for last in left.afterPowerLoss() {
          Self.check(last, start, "\(start), steps \(step) and \(second)")
          try Self.complete(last, "\(start), steps \(step) and \(second)")
        }
      }
    }
  }

  /// A call that fails once, as on a full disk: the process closes its files, and a later download continues.
  @Test(arguments: Start.allCases) func failsAtEachCall(start: Start) throws {
    var failures = 0
    for step in 0..<500 {
      let place: Comment = "\(start), step \(step)"
      let disk = try Self.disk(start)
      disk.fail(after: step, once: true)
      do {
        try Self.download(.wanted, to: disk)
        // Some calls may fail without harm.
        if !disk.hasFailedOnce { break }
      } catch {
        failures += 1
      }
      disk.fail(after: .max)
      Self.check(disk, start, place)
      try Self.complete(disk, place)
    }
    #expect(failures > 15)
  }

  /// The file with its name is complete, although its process was killed before it removed the record. A plan of another
  /// URL does not take it.
  @Test func aKilledInstallationIsCompleted() throws {
    var found = 0
    for step in 0..<200 {
      let disk = try Self.disk(.nothing)
      disk.fail(after: step)
      if (try? Self.download(.wanted, to: disk)) != nil { break }
      let left = disk.afterKill()
      guard left.bytes(Self.name) != nil, left.names.contains(DownloadStore.recordName(Self.name)) else { continue }
      found += 1
      let other = left.afterKill()
      try Self.download(.other, to: other)
      #expect(other.bytes(Self.name) == Version.other.bytes)
      let store = try Self.open(left, .wanted, DownloadHashes())
      #expect(store.completeCount == Version.wanted.bytes.count)
      #expect(left.names == [Self.name])
      for lost in left.afterPowerLoss() { #expect(lost.bytes(Self.name) == Version.wanted.bytes) }
    }
    #expect(found > 1)
  }

  /// After a failed sync the kernel may have dropped bytes, which the next sync would not say.
  @Test func noRecordIsWrittenAfterAFailedSync() throws {
    let disk = ScriptedDisk()
    let store = try Self.open(disk, .wanted, DownloadHashes())
    try store.write(Version.wanted.bytes, at: 0)
    let record = Self.record(.wanted, try #require(ByteRanges([0..<13])), store.inode)
    disk.fail(after: 0, with: .inputOutput, once: true)
    #expect(throws: Errno.inputOutput) { try store.checkpoint(record) }
    #expect(throws: Errno.inputOutput) { try store.checkpoint(record) }
    #expect(throws: Errno.inputOutput) { try store.install(total: 13) }
    #expect(disk.bytes(DownloadStore.recordName(Self.name)) == nil && disk.bytes(Self.name) == nil)
  }

  /// A disk without room: nothing is lost, and the download continues when there is room.
  @Test func aFullDisk() throws {
    var isDone = false
    for room in 0..<500 where !isDone {
      let disk = try Self.disk(.sameVersion)
      disk.setRoom(room)
      do {
        try Self.download(.wanted, to: disk)
        #expect(disk.bytes(Self.name) == Version.wanted.bytes)
        isDone = true
        continue
      } catch {
        #expect(error as? Errno == .noSpace || error as? DownloadStore.Failure == .disk(.noSpace))
      }
      Self.check(disk, .sameVersion, "\(room) bytes")
      let record = try #require(disk.bytes(DownloadStore.recordName(Self.name)).flatMap { DownloadRecord(file: $0) })
      #expect(record.kept.count >= 10, "\(room) bytes")
      disk.setRoom(.max)
      try Self.complete(disk, "\(room) bytes")
    }
    #expect(isDone)
  }

  /// The directory's calls of a download of one piece, in their order.
  @Test func orderOfCalls() throws {
    let disk = ScriptedDisk()
    let version = Version(url: "u", bytes: [1, 2])
    try Self.download(version, to: disk)
    let (part, record) = (DownloadStore.partName(Self.name), DownloadStore.recordName(Self.name))
    let expected = [
      "part sync", "create \(record).new", "sync file", "rename \(record).new \(record)", "sync", "part sync",
      "rename \(part) \(Self.name)", "sync", "remove \(record)", "sync",
    ]
    var calls = disk.calls[...]
    for call in expected {
      let index = try #require(calls.firstIndex(of: call), "\(call)")
      calls = calls[(index + 1)...]
    }
  }
}
