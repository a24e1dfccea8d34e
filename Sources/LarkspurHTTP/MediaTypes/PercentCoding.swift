/// Percent-encoding (RFC 3986, section 2.1).
public enum PercentCoding {
  private static let percent = UInt8(ascii: "%")

  /// Decodes percent-encoded bytes. A `%` without two hexadecimal digits after it stays as it is.
  public static func decoded(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      if byte == percent, let value = value(rest.prefix(2)) {
        result.append(value)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return result
  }

  /// Percent-encodes each byte that satisfies `mustEncode`, and each `%` without two hexadecimal digits after it.
  public static func encode(
    _ bytes: some Collection<UInt8>, into result: inout [UInt8], where mustEncode: (UInt8) -> Bool
  ) {
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      if byte == percent ? value(rest.prefix(2)) == nil : mustEncode(byte) {
        result += escaped(byte)
      } else {
        result.append(byte)
      }
    }
  }

  /// Returns the byte as `%` and two hexadecimal digits.
  public static func escaped(_ byte: UInt8) -> [UInt8] { [percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]] }

  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Returns the value of two hexadecimal digits, or `nil` if `two` is anything else.
  static func value(_ two: some Collection<UInt8>) -> UInt8? {
    let values = two.compactMap(ASCII.hexDigit)
    return two.count == 2 && values.count == 2 ? UInt8(values[0] << 4 | values[1]) : nil
  }
}
