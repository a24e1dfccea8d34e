import Foundation
import TestKit
import Testing
import ZipArchive

@Suite struct EndRecordTests {
  typealias Entry = ArchiveBytes.Entry

  private func start(_ bytes: [UInt8]) -> UInt64 {
    EndRecord.archiveStart(fileSize: UInt64(bytes.count)) { offset, count in
      Array(bytes.dropFirst(Int(clamping: offset)).prefix(count))
    }
  }

  private let archive = Array(ArchiveBytes(Entry("a", "1"), Entry("d/b", "22")).data)
  private let prefix = [UInt8](repeating: 0x78, count: 1000)

  @Test func offsetsFromTheStartOfTheFile() {
    #expect(start(archive) == 0)
    #expect(start(Array(ArchiveBytes().data)) == 0)
    #expect(start([]) == 0 && start(prefix) == 0)
  }

  @Test func offsetsFromTheStartOfTheArchive() {
    #expect(start(prefix + archive) == 1000)
    #expect(start(archive + archive) == UInt64(archive.count))
    #expect(start(prefix + Array(ArchiveBytes().data)) == 1000)
    // Bytes after the archive, and a comment of the greatest length.
    #expect(start(prefix + archive + [UInt8](repeating: 0, count: 500)) == 1000)
    let comment = [UInt8](repeating: 0x2E, count: 0xFFFF)
    #expect(start(prefix + archive.dropLast(2) + [0xFF, 0xFF] + comment) == 1000)
  }

  /// Makes the archive one with 64-bit records.
  private func archive64(size: UInt64? = nil, offset: UInt64? = nil) -> [UInt8] {
    let record = Array(archive.suffix(22))
    let number = { (index: Int) in record[index..<index + 4].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
    var bytes = Array(archive.dropLast(22))
    bytes += [0x50, 0x4B, 6, 6] + ArchiveBytes.bytes(UInt64(44)) + [45, 3, 45, 0]
    bytes += [UInt8](repeating: 0, count: 8)
    for value in [2, 2, size ?? number(12), offset ?? number(16)] { bytes += ArchiveBytes.bytes(value) }
    bytes += [0x50, 0x4B, 6, 7, 0, 0, 0, 0]
    bytes += ArchiveBytes.bytes(UInt64(archive.count - 22))
    bytes += [1, 0, 0, 0]
    bytes += record.prefix(8)
    return bytes + [UInt8](repeating: 0xFF, count: 12) + [0, 0]
  }

  @Test func recordsOf64Bits() {
    #expect(start(archive64()) == 0)
    #expect(start(prefix + archive64()) == 1000)
    for (size, offset) in [(.max, nil), (nil, .max), (1 << 63, 1 << 63), (.max, .max)] as [(UInt64?, UInt64?)] {
      #expect(start(prefix + archive64(size: size, offset: offset)) == 0)
    }
  }

  /// Numbers that lead to no directory have another meaning, whatever they are.
  @Test func liesAreNoPrefix() {
    let file = prefix + archive
    for index in file.count - 22..<file.count {
      for value in [0, 1, 0x7F, 0x80, 0xFF] as [UInt8] {
        var bytes = file
        bytes[index] = value
        #expect(start(bytes) <= UInt64(file.count), "\(index)")
      }
    }
    for count in 0..<archive.count { #expect(start(Array(archive.prefix(count))) == 0) }
    var other = file
    other[file.count - 22 - 1] = 0
    #expect(start(other) == 1000)
    // The size of the directory is wrong by one.
    other[file.count - 10] &+= 1
    #expect(start(other) == 0)
  }
}
