import Foundation

/// Information about an archive, with minizip's name.
// swift-format-ignore: TypeNamesShouldBeCapitalized
public struct unz_global_info: Hashable, Sendable {
  /// Number of entries.
  // swift-format-ignore: AlwaysUseLowerCamelCase
  public var number_entry: UInt = 0
  /// Always 0.
  // swift-format-ignore: AlwaysUseLowerCamelCase
  public var size_comment: UInt = 0

  /// Creates information.
  // swift-format-ignore: AlwaysUseLowerCamelCase
  public init(number_entry: UInt = 0, size_comment: UInt = 0) {
    self.number_entry = number_entry
    self.size_comment = size_comment
  }
}

/// Information about an entry of an archive, with minizip's names (APPNOTE.TXT 4.3.12). Sizes are in bytes.
// swift-format-ignore: TypeNamesShouldBeCapitalized, AlwaysUseLowerCamelCase
public struct unz_file_info: Hashable, Sendable {
  /// "Version made by": the host system (3 for Unix) in the upper byte. The lower byte is 0.
  public var version: UInt = 0
  /// Bit 0: the entry is encrypted. Bit 11: the name is UTF-8. All other bits are 0.
  public var flag: UInt = 0
  /// 0 for no compression, 8 for deflate.
  public var compression_method: UInt = 0
  /// The time of the last modification in the format of MS-DOS, in local time.
  public var dos_date: UInt = 0
  /// The CRC-32 of the contents.
  public var crc: UInt = 0
  /// The size of the contents in the archive.
  public var compressed_size: UInt = 0
  /// The size of the contents.
  public var uncompressed_size: UInt = 0
  /// The length of the name.
  public var size_filename: UInt = 0
  /// The external file attributes: the upper 16 bits are `st_mode` in archives from Unix.
  public var external_fa: UInt = 0

  /// Creates information in which every field is 0.
  public init() {}

  init(_ record: EntryRecord) {
    version = UInt(record.host) << 8
    flag = (record.isEncrypted ? 1 : 0) | (record.isUTF8 ? 1 << 11 : 0)
    compression_method = UInt(record.compressionMethod)
    dos_date = record.modified.map { Self.dosDate($0, in: .current) } ?? 0
    crc = UInt(record.checksum)
    compressed_size = UInt(clamping: record.compressedSize)
    uncompressed_size = UInt(clamping: record.size)
    size_filename = UInt(record.name.count)
    external_fa = UInt(record.attributes)
  }

  /// Packs a time in seconds since 1970 into the two words of MS-DOS, in units of two seconds from 1980 to 2107.
  static func dosDate(_ time: Double, in timeZone: TimeZone) -> UInt {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = timeZone
    let parts = calendar.dateComponents(
      [.year, .month, .day, .hour, .minute, .second], from: Date(timeIntervalSince1970: time))
    guard let year = parts.year, 1980...2107 ~= year else { return 0 }
    let date = (year - 1980) << 9 | (parts.month ?? 1) << 5 | (parts.day ?? 1)
    let clock = (parts.hour ?? 0) << 11 | (parts.minute ?? 0) << 5 | (parts.second ?? 0) / 2
    return UInt(clamping: date << 16 | clock)
  }
}
