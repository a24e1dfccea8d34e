import Foundation

/// An archive that is built byte by byte, with any lies (APPNOTE.TXT 4.3).
struct ArchiveBytes {
  struct Entry {
    var name: [UInt8]
    var data: [UInt8] = []
    /// The upper byte of "version made by".
    var host: UInt8 = 3
    var flags: UInt16 = 1 << 11
    var method: UInt16 = 0
    /// `st_mode`.
    var mode: UInt32 = 0o100644
    /// Time and date of MS-DOS.
    var time: UInt32 = 0x5AC9_6000
    /// What the archive says of the contents, if that is not the truth.
    var size: UInt32?
    var compressedSize: UInt32?
    var checksum: UInt32?
    /// The extra field in the central directory.
    var extra: [UInt8] = []
    /// The name in the local header, if another one.
    var localName: [UInt8]?
    /// The position of the local header, if the entry has none of its own.
    var offset: UInt32?

    init(_ name: String, _ text: String = "", mode: UInt32 = 0o100644) {
      self.name = Array(name.utf8)
      data = Array(text.utf8)
      self.mode = mode
    }

    init(bytes name: [UInt8], host: UInt8, flags: UInt16) {
      self.name = name
      (self.host, self.flags) = (host, flags)
      data = [0x61]
    }
  }

  var entries: [Entry] = []

  init(_ entries: Entry...) { self.entries = entries }
  init(_ entries: [Entry]) { self.entries = entries }

  var data: Data {
    var bytes: [UInt8] = []
    var directory: [UInt8] = []
    for entry in entries {
      let offset = entry.offset ?? UInt32(bytes.count)
      if entry.offset == nil { bytes += Self.local(entry) }
      directory += [0x50, 0x4B, 1, 2, 20, entry.host] + Self.common(entry) + Self.bytes(UInt16(entry.extra.count))
      directory += [UInt8](repeating: 0, count: 6) + Self.bytes(entry.mode << 16) + Self.bytes(offset)
      directory += entry.name + entry.extra
    }
    let count = Self.bytes(UInt16(truncatingIfNeeded: entries.count))
    let start = bytes.count
    bytes += directory
    bytes += [0x50, 0x4B, 5, 6, 0, 0, 0, 0] + count + count
    bytes += Self.bytes(UInt32(directory.count)) + Self.bytes(UInt32(start)) + [0, 0]
    return Data(bytes)
  }

  /// The local header and the contents.
  static func local(_ entry: Entry) -> [UInt8] {
    var header = entry
    header.name = entry.localName ?? entry.name
    return [0x50, 0x4B, 3, 4] + common(header) + bytes(UInt16(0)) + header.name + entry.data
  }

  /// The fields that both headers have.
  private static func common(_ entry: Entry) -> [UInt8] {
    let (size, compressedSize) = (
      entry.size ?? UInt32(entry.data.count), entry.compressedSize ?? UInt32(entry.data.count)
    )
    return bytes(UInt16(20)) + bytes(entry.flags) + bytes(entry.method) + bytes(entry.time)
      + bytes(entry.checksum ?? CRC.of(entry.data)) + bytes(compressedSize) + bytes(size)
      + bytes(UInt16(entry.name.count))
  }

  static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
  }
}

/// The checksum of zip archives.
enum CRC {
  private static let table: [UInt32] = (0..<256).map { (index: UInt32) in
    (0..<8).reduce(index) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
  }

  static func of(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ $0 >> 8 }
  }
}
