/// Decodes base64 as leniently as browsers do ("forgiving-base64 decode" of the WHATWG Infra Standard): white space is
/// skipped, padding may be missing, and left-over bits may be set.
///
/// - Returns: The bytes, or `nil` if the text is not base64.
public func base64Decoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
  var digits = text.filter { ![0x20, 0x09, 0x0a, 0x0c, 0x0d].contains($0) }
  if digits.count % 4 == 0 {
    for _ in 0..<2 where digits.last == UInt8(ascii: "=") { digits.removeLast() }
  }
  // A single digit holds no byte.
  guard digits.count % 4 != 1 else { return nil }
  var result: [UInt8] = []
  result.reserveCapacity(digits.count / 4 * 3 + 2)
  var bits: UInt32 = 0
  var bitCount = 0
  for digit in digits {
    guard let value = base64Value(digit) else { return nil }
    bits = bits << 6 | value
    bitCount += 6
    if bitCount >= 8 {
      bitCount -= 8
      result.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
    }
  }
  return result
}

private func base64Value(_ digit: UInt8) -> UInt32? {
  switch digit {
  case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
  case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
  case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
  case UInt8(ascii: "+"): 62
  case UInt8(ascii: "/"): 63
  default: nil
  }
}
