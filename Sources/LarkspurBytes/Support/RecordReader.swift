/// Reads the numbers and texts that `RecordWriter` has written.
///
/// The bytes are untrusted: a function returns `nil` if they end too early or are not what the function reads. A size
/// is compared with the remaining bytes before any memory is allocated for it.
public struct RecordReader: Sendable {
  private var bytes: ArraySlice<UInt8>

  public init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// Whether all bytes have been read.
  public var isAtEnd: Bool { bytes.isEmpty }

  public mutating func number(_ type: UInt8.Type) -> UInt8? { bytes.popFirst() }

  public mutating func number(_ type: UInt32.Type) -> UInt32? {
    guard let bytes = take(4) else { return nil }
    return bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }

  public mutating func number(_ type: UInt64.Type) -> UInt64? {
    guard let bytes = take(8) else { return nil }
    return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  public mutating func data() -> [UInt8]? {
    guard let count = number(UInt32.self) else { return nil }
    return take(Int(count)).map { Array($0) }
  }

  /// Reads a text.
  ///
  /// - Returns: The text, or `nil` if the bytes are incomplete or are not UTF-8, which no writer writes.
  public mutating func text() -> String? { data().flatMap { String(validating: $0, as: UTF8.self) } }

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

  private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= bytes.count else { return nil }
    let taken = bytes.prefix(count)
    bytes = bytes.dropFirst(count)
    return taken
  }
}
