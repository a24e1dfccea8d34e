import Testing
import ZipArchive

@Suite struct EntryTimeTests {
  @Test(arguments: [0, 1, -1, 1_700_000_001, 0x7FFF_FFFF, -0x8000_0000] as [Double])
  func extendedFields(time: Double) throws {
    let field = try #require(EntryTime.extendedField(modified: time + 0.75))
    #expect(field.count == 5)
    #expect(EntryTime.extended.modified(in: field) == time)
  }

  @Test(arguments: [0x8000_0000, -0x8000_0001, .infinity, -.infinity, .nan] as [Double])
  func timesOfMoreBits(time: Double) {
    #expect(EntryTime.extendedField(modified: time) == nil)
  }

  private let ntfs: [UInt8] =
    [0, 0, 0, 0, 1, 0, 24, 0] + [0x80, 0x96, 0x05, 0xC7, 0x47, 0x17, 0xDA, 0x01] + [UInt8](repeating: 0, count: 16)

  @Test func otherFields() {
    // 133,444,736,010,000,000 units of 100 ns.
    #expect(EntryTime.ntfs.modified(in: ntfs) == 1_700_000_001)
    #expect(EntryTime.unix.modified(in: [9, 9, 9, 9, 1, 0, 0, 0]) == 1)
    #expect(EntryTime.unix.modified(in: [9, 9, 9, 9, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2]) == -1)
  }

  /// A field that is cut off has no time, and one of another form neither.
  @Test func cutFields() {
    for count in 0..<5 { #expect(EntryTime.extended.modified(in: Array([1, 2, 3, 4, 5].prefix(count))) == nil) }
    for count in 0..<ntfs.count { #expect(EntryTime.ntfs.modified(in: Array(ntfs.prefix(count))) == nil) }
    for count in 0..<8 { #expect(EntryTime.unix.modified(in: [UInt8](repeating: 1, count: count)) == nil) }
    #expect(EntryTime.extended.modified(in: [2, 1, 1, 1, 1]) == nil)
    var other = ntfs
    other[4] = 2
    #expect(EntryTime.ntfs.modified(in: other) == nil)
    #expect(EntryTime.ntfs.modified(in: ntfs.prefix(8) + [UInt8](repeating: 0, count: 24)) == nil)
    #expect(EntryTime.ntfs.modified(in: ntfs.prefix(8) + [UInt8](repeating: 0xFF, count: 24)) != nil)
  }
}
