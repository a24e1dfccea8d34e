import Foundation
import TestKit
import Testing
import ZipArchive

/// Archives whose headers contradict one another, or the contents. Nothing of them is left behind.
@Suite(.ownThread) struct LyingHeaderTests {
  typealias Entry = ArchiveBytes.Entry

  /// An entry with the 64-bit extra field (APPNOTE.TXT 4.5.3).
  private func entry64(_ name: String, size: UInt64, compressedSize: UInt64, cut: Int = 0) -> Entry {
    var entry = Entry(name, "0123456789")
    (entry.size, entry.compressedSize) = (.max, .max)
    let field = (ArchiveBytes.bytes(size) + ArchiveBytes.bytes(compressedSize)).dropLast(cut)
    entry.extra = [1, 0] + ArchiveBytes.bytes(UInt16(field.count)) + field
    return entry
  }

  // MARK: - Sizes of 64 bits

  @Test func rightSizesOf64Bits() throws {
    let room = try Room()
    #expect(try extract(ArchiveBytes(entry64("a", size: 10, compressedSize: 10)), in: room) == nil)
    #expect(room.text("out/a") == "0123456789")
  }

  @Test(
    arguments: [
      (9, 10), (11, 10), (1 << 32, 10), (1 << 40, 10), (.max, 10), (1 << 63, 10), (10, 9), (10, 11), (10, 1 << 32),
      (10, .max), (10, 1 << 63), (.max, .max), (0, 10), (10, 0),
    ] as [(UInt64, UInt64)])
  func wrongSizesOf64Bits(size: UInt64, compressedSize: UInt64) throws {
    let room = try Room()
    let archive = ArchiveBytes(Entry("good", "good"), entry64("lie", size: size, compressedSize: compressedSize))
    let error = try extract(archive, in: room)
    #expect(error?.domain == SSZipArchiveErrorDomain)
    #expect(room.names("") == ["made.zip"])
  }

  @Test func aShortFieldOf64Bits() throws {
    for cut in 1...16 {
      let room = try Room()
      let archive = ArchiveBytes(Entry("good", "good"), entry64("lie", size: 10, compressedSize: 10, cut: cut))
      #expect(try extract(archive, in: room)?.archiveCode == .failedOpenZipFile, "\(cut)")
      #expect(room.names("") == ["made.zip"])
    }
  }

  // MARK: - The two headers of an entry

  /// The name in the central directory counts, as for all that is checked. The local one is not used.
  @Test(arguments: ["../slip", "/tmp/larkspur-slip", "other", "good\0", ""]) func anotherLocalName(name: String) throws
  {
    let room = try Room()
    var entry = Entry("good", "text")
    entry.localName = Array(name.utf8)
    #expect(try extract(ArchiveBytes(entry), in: room) == nil)
    #expect(room.names("") == ["made.zip", "out", "out/good"] && room.text("out/good") == "text")
  }

  @Test func anotherCentralName() throws {
    let room = try Room()
    var entry = Entry("../slip", "evil")
    entry.localName = Array("good".utf8)
    #expect(try extract(ArchiveBytes(entry), in: room)?.archiveCode == .unsafeEntryName)
    #expect(room.names("") == ["made.zip"])
  }

  /// The local header is somewhere else, or nowhere: the first entry is extracted by then, and goes again.
  @Test(arguments: [1, 30, 40, 70, 1000, 0x7FFF_FFFF, 0xFFFF_FFFE] as [UInt32]) func aWrongPlace(offset: UInt32) throws
  {
    let room = try Room()
    var entry = Entry("lie", "0123456789")
    entry.offset = offset
    let archive = ArchiveBytes(Entry("good", String(repeating: "x", count: 200)), entry)
    let error = try extract(archive, in: room)
    #expect(error?.domain == SSZipArchiveErrorDomain, "\(offset)")
    #expect(room.names("") == ["made.zip"])
  }

  // MARK: - Numbers of entries

  /// The end record counts in 16 bits: 65,536 entries are 0 there. libzip counts them all the same.
  @Test func aNumberThatWraps() throws {
    let room = try Room()
    var limits = SSZipArchiveLimits()
    limits.entryCountMax = 65_535
    let archive = ArchiveBytes((0..<65_536).map { Entry("\($0)") })
    #expect(try extract(archive, in: room, limits: limits)?.archiveCode == .tooManyEntries)
    #expect(room.names("") == ["made.zip"])
  }

  /// The end record states more entries, fewer entries, or another place of the directory.
  @Test(arguments: [(8, 3), (10, 3), (10, 1), (12, 1), (12, 200), (16, 1), (16, 255), (4, 1)])
  func aWrongEndRecord(position: Int, value: UInt8) throws {
    let room = try Room()
    var data = ArchiveBytes(Entry("a", "1"), Entry("b", "2")).data
    data[data.count - 22 + position] = value
    let error = try extract(room.write("made.zip", data), in: room)
    #expect(error?.domain == SSZipArchiveErrorDomain)
    #expect(room.names("") == ["made.zip"])
  }

  // MARK: - Damage behind the first entries

  /// Makes an archive of a small entry and a large, compressed one.
  private func large(_ room: Room, password: String?) throws -> Data {
    let archive = SSZipArchive(path: room.path("large.zip"))
    var random = SeededGenerator(seed: 35)
    let text = (0..<40_000).map { _ in UInt8.random(in: 0x61...0x68, using: &random) }
    #expect(
      archive.open() && archive.write(Data("good".utf8), filename: "good", withPassword: password)
        && archive.write(Data(text), filename: "d/large", withPassword: password) && archive.close())
    defer { try? FileManager.default.removeItem(atPath: room.path("large.zip")) }
    return try Data(contentsOf: room.url.appending(path: "large.zip"))
  }

  /// The position of the second local header.
  private func secondHeader(_ data: Data) throws -> Int {
    let positions = data.indices.dropLast(3).filter { Array(data[$0..<$0 + 4]) == [0x50, 0x4B, 3, 4] }
    return try #require(positions.count == 2 ? positions[1] : nil)
  }

  /// libzip fails to open a later entry: it does not know the compression, or cannot know it.
  @Test(arguments: [14, 0xFFFF] as [UInt16]) func aLaterEntryThatCannotBeOpened(method: UInt16) throws {
    let room = try Room()
    try room.write("out/good", "old")
    var entry = Entry("d/lie", "0123456789")
    entry.method = method
    let archive = ArchiveBytes(Entry("good", "new"), entry)
    #expect(try extract(archive, in: room)?.archiveCode == .failedOpenFileInZip)
    #expect(room.names("out") == ["good"] && room.text("out/good") == "old")
  }

  /// The middle of a compressed entry: libzip fails when a part has been written.
  @Test func damagedContentsOfALaterEntry() throws {
    let room = try Room()
    try room.write("out/good", "old")
    var data = try large(room, password: nil)
    let middle = try secondHeader(data) + 8000
    data.replaceSubrange(middle..<middle + 100, with: Data(repeating: 0xFF, count: 100))
    let code = try extract(room.write("made.zip", data), in: room)?.archiveCode
    #expect([.fileContentNotReadable, .fileInfoNotLoadable].contains(code))
    #expect(room.names("out") == ["good"] && room.text("out/good") == "old")
  }

  /// Bytes are missing in the middle, and the directory is whole.
  @Test(arguments: [nil, "secret"]) func missingBytes(password: String?) throws {
    let room = try Room()
    let whole = try large(room, password: password)
    let second = try secondHeader(whole)
    for position in stride(from: 0, to: second + 300, by: 10) {
      var data = whole
      data.remove(at: position)
      let path = try room.write("made.zip", data)
      let error = extract(path, in: room, password: password)
      #expect(error?.domain == SSZipArchiveErrorDomain, "\(position)")
      #expect(room.names("") == ["made.zip"], "\(position)")
    }
  }

  /// Makes an encrypted archive of one entry.
  private func encrypted(_ room: Room, aes: Bool) throws -> Data {
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(
      archive.open()
        && archive.write(Data("text".utf8), filename: "a", compressionLevel: 9, password: "secret", aes: aes)
        && archive.close())
    return try Data(contentsOf: room.url.appending(path: "made.zip"))
  }

  /// Every tenth byte of an encrypted archive is changed: a clear error, or the right contents.
  @Test(arguments: [true, false]) func damagedEncryption(aes: Bool) throws {
    let room = try Room()
    let whole = try encrypted(room, aes: aes)
    var refusals = 0
    for position in stride(from: 0, to: whole.count, by: 10) {
      var data = whole
      data[position] ^= 0x55
      let error = extract(try room.write("made.zip", data), in: room, password: "secret")
      if let error {
        #expect(error.domain == SSZipArchiveErrorDomain, "\(position)")
        refusals += 1
      } else {
        let names = try #require(room.names("out"))
        #expect(names.count == 1 && room.text("out/\(names[0])") == "text", "\(position)")
        try FileManager.default.removeItem(atPath: room.path("out"))
      }
      #expect(room.names("") == ["made.zip"], "\(position)")
    }
    #expect(refusals > 3)
  }

  @Test(arguments: [true, false]) func truncatedEncryption(aes: Bool) throws {
    let room = try Room()
    let whole = try encrypted(room, aes: aes)
    for count in stride(from: 0, to: whole.count, by: 10) {
      let error = extract(try room.write("made.zip", whole.prefix(count)), in: room, password: "secret")
      #expect(error?.archiveCode == .failedOpenZipFile, "\(count)")
      #expect(room.names("") == ["made.zip"])
    }
  }
}
