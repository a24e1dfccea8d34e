/// Writes the numbers and texts of a file's record. `RecordReader` reads them.
///
/// Numbers are little-endian. A text or data follows its size in bytes, which is a number of 32 bits.
public struct RecordWriter: Sendable {
  public var bytes: [UInt8] = []

  public init() {}

  public mutating func number(_ number: UInt8) { bytes.append(number) }

  public mutating func number(_ number: UInt32) {
    for index in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: number >> UInt32(8 * index))) }
  }

  public mutating func number(_ number: UInt64) {
    for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index))) }
  }

  public mutating func data(_ data: [UInt8]) {
    number(UInt32(clamping: data.count))
    bytes += data
  }

  public mutating func text(_ text: String) {
    number(UInt32(clamping: text.utf8.count))
    bytes += text.utf8
  }

  /// Writes a text that may be absent: a byte that says whether there is one, and the text.
  public mutating func optional(_ text: String?) {
    number(UInt8(text == nil ? 0 : 1))
    if let text { self.text(text) }
  }
}
