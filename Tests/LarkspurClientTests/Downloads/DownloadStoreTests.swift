import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import TestKit
import Testing

@testable import LarkspurEngine

/// The store in a real directory.
@Suite struct DownloadStoreTests {
  private static let url = "http://example.org/file"
  private static let content: [UInt8] = (0..<1000).map { UInt8(truncatingIfNeeded: $0 * 7) }
  private let place: TemporaryDirectory

  init() throws { place = try TemporaryDirectory() }

  private func open(
    _ hashes: DownloadHashes = DownloadHashes(), urls: [String] = [url], bytesToLeave: Int = 0
  ) throws(DownloadStore.Failure) -> DownloadStore {
    try DownloadStore(path: place.path("name"), urls: urls, hashes, bytesToLeave: bytesToLeave)
  }

  private static func record(_ kept: Range<Int>..., in store: DownloadStore) -> DownloadRecord {
    DownloadRecord(
      sources: [.init(url: url, validator: "\"v\"")], total: content.count, coding: nil,
      kept: ByteRanges(kept) ?? ByteRanges(), inode: store.inode)
  }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: place.url.path).sorted()
  }

  private static let checksum = try? DownloadChecksum(.sha256, DownloadStoreTests.hash(content[...]))

  private static func hash(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    messageHash(.sha256, Array(bytes)) ?? []
  }

  // MARK: - From the beginning to the end

  @Test func aDownloadIsContinuedAndInstalled() throws {
    var store = try open()
    #expect(store.record == nil && store.completeCount == nil)
    try store.reserve(Self.content.count)
    try store.write(Self.content[600...], at: 600)
    try store.checkpoint(Self.record(600..<1000, in: store))
    try store.write(Self.content[..<100], at: 0)
    #expect(try names() == ["name.larkspur-download", "name.larkspur-part"])
    store.close()
    // The bytes after the checkpoint are not in the record.
    store = try open()
    let record = Self.record(600..<1000, in: store)
    #expect(store.record == record)
    try store.write(Self.content[..<600], at: 0)
    try store.checkpoint(Self.record(0..<1000, in: store))
    #expect(store.verify(total: 1000) == .fits)
    try store.install(total: 1000)
    #expect(try names() == ["name"])
    #expect(try Data(contentsOf: place.file("name")) == Data(Self.content))
    #expect(try store.read(at: 990, atMost: 100) == Array(Self.content[990...]))
    store.close()
    #expect(try names() == ["name"])
  }

  /// A download that cannot be resumed leaves nothing.
  @Test func aPartWithoutARecordIsRemoved() throws {
    let store = try open()
    try store.write([1, 2, 3], at: 0)
    var record = Self.record(0..<3, in: store)
    record.sources = []
    try store.checkpoint(record)
    #expect(try names() == ["name.larkspur-part"])
    store.close()
    #expect(try names() == [])
  }

  @Test func bytesAfterTheEndAreCutOff() throws {
    let store = try open()
    try store.write([1, 2, 3], at: 0)
    #expect(throws: Errno.inputOutput) { try store.install(total: 4) }
    #expect(try names() == ["name.larkspur-part"])
    try store.install(total: 2)
    #expect(try Data(contentsOf: place.file("name")) == Data([1, 2]))
  }

  /// A file that has taken the part's name does not get the destination's.
  @Test func aPartThatWasReplacedIsNotInstalled() throws {
    let store = try open()
    try store.write([1].span, at: 0)
    let part = place.file("name.larkspur-part")
    try FileManager.default.moveItem(at: part, to: place.file("moved"))
    #expect(throws: Errno.noSuchFile) { try store.install(total: 1) }
    try Data([2]).write(to: part)
    #expect(throws: Errno.noSuchFile) { try store.install(total: 1) }
    store.close()
    #expect(try names() == ["moved", "name.larkspur-part"])
  }

  @Test func anEmptyFile() throws {
    let store = try open(DownloadHashes(pieces: try DownloadPieceHashes(.sha1, pieceBytes: 1, hashes: [])))
    try store.reserve(0)
    #expect(store.verify(total: 0) == .fits)
    try store.install(total: 0)
    #expect(try Data(contentsOf: place.file("name")).isEmpty)
  }

  // MARK: - The destination

  @Test func aReplacedFileKeepsItsPermissions() throws {
    try Data([0]).write(to: place.file("name"))
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: place.path("name"))
    let store = try open()
    try store.write([1], at: 0)
    try store.install(total: 1)
    #expect(try OpenDirectory(path: place.url.path).facts("name")?.permissions == 0o640)
    #expect(try Data(contentsOf: place.file("name")) == Data([1]))
  }

  @Test func aLinkIsReplacedAndNotFollowed() throws {
    try Data([0]).write(to: place.file("target"))
    try FileManager.default.createSymbolicLink(atPath: place.path("name"), withDestinationPath: "target")
    let store = try open(DownloadHashes(checksum: try DownloadChecksum(.sha256, Self.hash([0]))))
    #expect(store.completeCount == nil)
    try store.write([1], at: 0)
    try store.install(total: 1)
    #expect(try OpenDirectory(path: place.url.path).facts("name")?.kind == .regularFile)
    #expect(try Data(contentsOf: place.file("target")) == Data([0]))
  }

  @Test func otherDestinationsAreRefused() throws {
    try FileManager.default.createDirectory(at: place.file("name"), withIntermediateDirectories: false)
    #expect(throws: DownloadStore.Failure.destination(.directory)) { try open() }
    try FileManager.default.removeItem(at: place.file("name"))
    #expect(mkfifo(place.path("name"), 0o600) == 0)
    #expect(throws: DownloadStore.Failure.destination(.other)) { try open() }
    #expect(try names() == ["name"])
    let nowhere = place.path("none/name")
    #expect(throws: DownloadStore.Failure.disk(.noSuchFile)) {
      try DownloadStore(path: nowhere, urls: [], DownloadHashes(), bytesToLeave: 0)
    }
    let long = String(repeating: "x", count: DownloadStore.nameBytesMax)
    let beside = ["a.larkspur-part", "a.larkspur-download", "a.larkspur-download.new", ".larkspur-part"]
    for name in ["", ".", "..", "a\0", long + "x"] + beside {
      #expect(throws: DownloadStore.Failure.name) {
        try DownloadStore(path: place.path("") + "/" + name, urls: [], DownloadHashes(), bytesToLeave: 0)
      }
    }
    let store = try DownloadStore(path: place.path(long), urls: [], DownloadHashes(), bytesToLeave: 0)
    try store.checkpoint(Self.record(in: store))
    try store.install(total: 0)
  }

  /// A destination with the plan's hashes is the result, whatever lies beside it.
  @Test func aDestinationThatHasTheHashes() throws {
    let store = try open()
    try store.write([1], at: 0)
    try store.checkpoint(Self.record(0..<1, in: store))
    store.close()
    try Data(Self.content).write(to: place.file("name"))
    let wrong = try open(DownloadHashes(checksum: try DownloadChecksum(.sha256, Self.hash([1]))))
    #expect(wrong.completeCount == nil && wrong.record != nil)
    wrong.close()
    let right = try open(DownloadHashes(checksum: Self.checksum))
    #expect(right.completeCount == 1000)
    #expect(try right.read(at: 0, atMost: 2) == Array(Self.content.prefix(2)))
    right.close()
    #expect(try names() == ["name"])
  }

  // MARK: - Files beside the destination

  @Test func aSecondDownloadIsRefused() throws {
    var store: DownloadStore? = try open()
    #expect(throws: DownloadStore.Failure.inUse) { try open() }
    store?.close()
    let second = try open()
    #expect(throws: DownloadStore.Failure.inUse) { try open() }
    second.close()
    store = nil
    try open().close()
  }

  @Test(arguments: ["name.larkspur-part", "name.larkspur-download"])
  func entriesOfOtherKindsAreNotTouched(name: String) throws {
    try Data([5]).write(to: place.file("other"))
    for make in [
      { try FileManager.default.createSymbolicLink(atPath: place.path(name), withDestinationPath: "other") },
      { try FileManager.default.linkItem(at: place.file("other"), to: place.file(name)) },
      { try FileManager.default.createDirectory(at: place.file(name), withIntermediateDirectories: false) },
    ] as [() throws -> Void] {
      try make()
      #expect(throws: DownloadStore.Failure.foreign(name)) { try open() }
      #expect(try Data(contentsOf: place.file("other")) == Data([5]))
      #expect(try names().contains(name))
      try FileManager.default.removeItem(at: place.file(name))
    }
  }

  enum Spoiling: CaseIterable, Sendable { case record, otherPart, shortPart, noRecord }

  /// A record that does not fit to the part is no record: everything is fetched again.
  @Test(arguments: Spoiling.allCases) func aRecordOfAnotherPart(spoiling: Spoiling) throws {
    let store = try open()
    try store.write(Self.content, at: 0)
    try store.checkpoint(Self.record(0..<1000, in: store))
    store.close()
    let part = place.file("name.larkspur-part")
    switch spoiling {
    case .record: try Data([1, 2, 3]).write(to: place.file("name.larkspur-download"))
    case .otherPart:
      try FileManager.default.copyItem(at: part, to: place.file("copy"))
      try FileManager.default.removeItem(at: part)
      try FileManager.default.moveItem(at: place.file("copy"), to: part)
    case .shortPart: try FileHandle(forWritingTo: part).truncate(atOffset: 999)
    case .noRecord: try FileManager.default.removeItem(at: place.file("name.larkspur-download"))
    }
    let next = try open()
    #expect(next.record == nil)
    #expect(try next.read(at: 0, atMost: 1) == [])
    #expect(try names() == ["name.larkspur-part"])
  }

  /// The part is gone: a new one, which may have its inode, has none of the bytes.
  @Test func aRecordWithoutAPart() throws {
    let store = try open()
    try store.write(Self.content, at: 0)
    try store.checkpoint(Self.record(0..<1000, in: store))
    store.close()
    try FileManager.default.removeItem(at: place.file("name.larkspur-part"))
    #expect(try open().record == nil)
  }

  // MARK: - Room

  @Test func roomThatIsNotThere() throws {
    let store = try open(bytesToLeave: 1 << 62)
    #expect(throws: Errno.noSpace) { try store.reserve(1) }
    store.close()
    #expect(throws: Errno.noSpace) { try open().reserve(.max) }
  }

  // MARK: - Hashes

  private func written(_ bytes: [UInt8], _ hashes: DownloadHashes) throws -> DownloadStore {
    let store = try open(hashes)
    try store.write(bytes, at: 0)
    return store
  }

  @Test func aWholeWithAnotherChecksum() throws {
    let store = try written(Self.content, DownloadHashes(checksum: Self.checksum))
    #expect(store.verify(total: 1000) == .fits)
    #expect(store.verify(total: 999) == .wrong([]))
    try store.write([0xff], at: 500)
    #expect(store.verify(total: 1000) == .wrong([]))
    #expect(store.verify(total: 1001) == .failed(.failed(Errno.inputOutput.rawValue)))
    store.interrupt()
    #expect(store.verify(total: 1000) == .failed(.failed(Errno.interrupted.rawValue)))
  }

  @Test func piecesWithOtherHashes() throws {
    let hashes = stride(from: 0, to: 1000, by: 300).map { Self.hash(Self.content[$0..<min($0 + 300, 1000)]) }
    let pieces = try DownloadPieceHashes(.sha256, pieceBytes: 300, hashes: hashes)
    let store = try written(Self.content, DownloadHashes(pieces: pieces))
    #expect(store.verify(total: 1000) == .fits)
    try store.write([0xff], at: 299)
    try store.write([0xff], at: 999)
    #expect(store.verify(total: 1000) == .wrong([0..<300, 900..<1000]))
    #expect(store.verify(total: 900) == .wrong([]))
    store.close()
    // Right pieces do not stand for the whole.
    let whole = try DownloadChecksum(.sha256, Self.hash([]))
    let both = try written(Self.content, DownloadHashes(checksum: whole, pieces: pieces))
    #expect(both.verify(total: 1000) == .wrong([]))
  }

  @Test func aResponsesDigestCountsWithoutHashesOfThePlan() throws {
    let right = ["sha-256=:\(Base64.encode(Self.hash(Self.content[...]))):"]
    let wrong = ["sha-256=:\(Base64.encode(Self.hash([1]))):"]
    let store = try written(Self.content, DownloadHashes())
    #expect(store.note(reprDigest: []) && store.note(reprDigest: ["?"]))
    #expect(store.verify(total: 1000) == .fits)
    #expect(store.note(reprDigest: wrong))
    #expect(store.verify(total: 1000) == .wrong([]))
    #expect(!store.note(reprDigest: right))
    // Another version has another digest.
    try store.discard()
    #expect(store.note(reprDigest: right) && store.note(reprDigest: right))
    #expect(!store.note(reprDigest: wrong))
    try store.write(Self.content, at: 0)
    #expect(store.verify(total: 1000) == .fits)
    store.close()
    let planned = try written([1], DownloadHashes(checksum: Self.checksum))
    #expect(planned.note(reprDigest: right) && !planned.note(reprDigest: wrong))
    #expect(planned.verify(total: 1) == .wrong([]))
  }
}

extension DownloadStore {
  /// Writes bytes that need not outlive the call.
  func write(_ bytes: some Sequence<UInt8>, at offset: Int) throws {
    let bytes = Array(bytes)
    try write(bytes.span, at: offset)
  }
}
