/// Rows of an ELF table, all of one size, with little-endian numbers.
struct ELFFields {
  private let bytes: [UInt8]
  private let rowSize: Int

  /// Bytes behind the last whole row are left out.
  init(_ bytes: [UInt8], rowSize: Int) {
    self.bytes = bytes
    self.rowSize = max(rowSize, 1)
  }

  var rows: Range<Int> { 0..<bytes.count / rowSize }

  func uint16(_ offset: Int, row: Int = 0) -> UInt64 { number(offset, row, size: 2) }

  func uint32(_ offset: Int, row: Int = 0) -> UInt64 { number(offset, row, size: 4) }

  func uint64(_ offset: Int, row: Int = 0) -> UInt64 { number(offset, row, size: 8) }

  /// - Returns: The number, or 0 if it is not within the row or the row not within the table.
  private func number(_ offset: Int, _ row: Int, size: Int) -> UInt64 {
    guard rows.contains(row), offset >= 0, offset <= rowSize - size else { return 0 }
    var index = row * rowSize + offset + size
    var number: UInt64 = 0
    for _ in 0..<size {
      index -= 1
      number = number << 8 | UInt64(bytes[index])
    }
    return number
  }
}
