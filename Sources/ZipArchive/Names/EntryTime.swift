/// The extra fields that have the time of modification in universal time. The headers' own time is local, in units of two
/// seconds (APPNOTE.TXT 4.4.6).
package enum EntryTime: UInt16, CaseIterable {
  /// Info-ZIP's extended timestamp (extrafld.txt). Comes first, because it is the one that is written.
  case extended = 0x5455
  /// The times of NTFS (APPNOTE.TXT 4.5.5), which 7-Zip and WinRAR write.
  case ntfs = 0x000A
  /// Info-ZIP's older times of Unix (extrafld.txt), which macOS writes.
  case unix = 0x5855

  /// Reads the time of modification.
  ///
  /// - Parameter field: The field without its ID and size.
  /// - Returns: Seconds since 1970, or `nil` if the field is cut off or has no such time.
  package func modified(in field: [UInt8]) -> Double? {
    switch self {
    // Bit 0 of the flags says that the time follows them.
    case .extended: field.count >= 5 && field[0] & 1 == 1 ? Self.seconds(field[1..<5]) : nil
    case .ntfs: Self.modified(ntfs: field)
    // The time of the last access comes first.
    case .unix: field.count >= 8 ? Self.seconds(field[4..<8]) : nil
    }
  }

  /// Reads the first attribute of the field: its tag 1, its size 24, and three times, in units of 100 ns since 1601.
  private static func modified(ntfs field: [UInt8]) -> Double? {
    guard field.count >= 32, field[4...7].elementsEqual([1, 0, 24, 0]) else { return nil }
    let ticks = field[8..<16].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return ticks == 0 ? nil : Double(ticks) / 10_000_000 - 11_644_473_600
  }

  /// Reads seconds since 1970: 32 bits with a sign.
  private static func seconds(_ bytes: ArraySlice<UInt8>) -> Double {
    Double(Int32(bitPattern: bytes.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }))
  }

  /// Returns the extended timestamp for a time of modification in seconds since 1970, for both headers of an entry.
  ///
  /// - Returns: `nil` if 32 bits do not hold the time: before 1901, and after 2038.
  package static func extendedField(modified time: Double) -> [UInt8]? {
    guard let seconds = Int32(exactly: time.rounded(.down)) else { return nil }
    let bits = UInt32(bitPattern: seconds)
    return [1] + stride(from: 0, to: 32, by: 8).map { UInt8(truncatingIfNeeded: bits >> $0) }
  }
}
