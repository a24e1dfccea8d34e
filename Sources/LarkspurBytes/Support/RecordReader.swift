/// Reads the numbers and texts that `RecordWriter` has written.
///
/// The bytes are untrusted: a function returns `nil` if they end too early or are not what the function reads. A size
/// is compared with the remaining bytes before any memory is allocated for it.
public struct RecordReader: Sendable {
  private let bytes: ArraySlice<UInt8>
  private var position: Int

  public init(bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  /// Whether all bytes have been read.
  public var isAtEnd: Bool { position == bytes.endIndex }

  public mutating func number(_ type: UInt8.Type) -> UInt8? { take(1).map { bytes[$0.lowerBound] } }

  public mutating func number(_ type: UInt32.Type) -> UInt32? {
    guard let range = take(4) else { return nil }
    var number: UInt32 = 0
    for index in 0..<4 { number |= UInt32(bytes[range.lowerBound + index]) << UInt32(8 * index) }
    return number
  }

  public mutating func number(_ type: UInt64.Type) -> UInt64? {
    guard let range = take(8) else { return nil }
    var number: UInt64 = 0
    for index in 0..<8 { number |= UInt64(bytes[range.lowerBound + index]) << UInt64(8 * index) }
    return number
  }

  public mutating func data() -> [UInt8]? { sized().map { Array(bytes[$0]) } }

  /// Reads a text.
  ///
  /// - Returns: The text, or `nil` if the bytes are incomplete or are not UTF-8, which no writer writes.
  public mutating func text() -> String? {
    guard let range = sized() else { return nil }
    do {
      return String(copying: try UTF8Span(validating: bytes[range].span))
    } catch {
      return nil
    }
  }

  /// A text that may be absent.
  public struct OptionalText: Sendable {
    public var text: String?
  }

  /// Reads a text that may be absent.
  ///
  /// - Returns: The text or its absence, or `nil` if the bytes cannot be read.
  public mutating func optional() -> OptionalText? {
    guard let flag = number(UInt8.self), flag <= 1 else { return nil }
    guard flag == 1 else { return OptionalText(text: nil) }
    guard let text = text() else { return nil }
    return OptionalText(text: text)
  }

  private mutating func sized() -> Range<Int>? { number(UInt32.self).flatMap { take(Int($0)) } }

  private mutating func take(_ count: Int) -> Range<Int>? {
    guard count <= bytes.endIndex - position else { return nil }
    defer { position += count }
    return position..<position + count
  }
}
