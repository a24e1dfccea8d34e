/// An IP address as a number, without a port and without a zone.
public enum IPAddress: Hashable, Sendable {
  case ipv4(UInt32)
  case ipv6(high: UInt64, low: UInt64)

  /// Reads `192.0.2.1` or `2001:db8::1` (RFC 4291 2.2), without brackets. Fails for any other text.
  public init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    if let address = Self.dottedDecimal(bytes[...]) {
      self = .ipv4(address)
    } else if let groups = Self.groups(bytes[...]) {
      let number = { (half: ArraySlice<UInt16>) in half.reduce(0 as UInt64) { $0 << 16 | UInt64($1) } }
      self = .ipv6(high: number(groups[..<4]), low: number(groups[4...]))
    } else {
      return nil
    }
  }

  /// Returns whether both addresses are of the same family and have the same first `bits` bits.
  func hasPrefix(of other: IPAddress, bits: Int) -> Bool {
    switch (self, other) {
    // A shift by the whole width gives zero.
    case (.ipv4(let own), .ipv4(let other)): (own ^ other) >> (32 - bits) == 0
    case (.ipv6(let high, let low), .ipv6(let otherHigh, let otherLow)):
      bits <= 64
        ? (high ^ otherHigh) >> (64 - bits) == 0 : high == otherHigh && (low ^ otherLow) >> (128 - bits) == 0
    default: false
    }
  }

  /// Number of bits of an address of this family.
  var bitCount: Int { if case .ipv4 = self { 32 } else { 128 } }

  /// Reads four decimal numbers without leading zeros, which other parsers read as octal.
  private static func dottedDecimal(_ bytes: ArraySlice<UInt8>) -> UInt32? {
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var address: UInt32 = 0
    for part in parts {
      guard 1...3 ~= part.count, part.allSatisfy(ASCII.isDigit), part.count == 1 || part.first != UInt8(ascii: "0"),
        let number = UInt8(String(decoding: part, as: UTF8.self))
      else { return nil }
      address = address << 8 | UInt32(number)
    }
    return address
  }

  /// Reads the eight groups of an IPv6 address.
  private static func groups(_ bytes: ArraySlice<UInt8>) -> [UInt16]? {
    let colon = UInt8(ascii: ":")
    guard let gap = bytes.indices.dropLast().first(where: { bytes[$0] == colon && bytes[$0 + 1] == colon }) else {
      return run(bytes).flatMap { $0.count == 8 ? $0 : nil }
    }
    let before = bytes[..<gap]
    let behind = bytes[(gap + 2)...]
    guard let first = before.isEmpty ? [] : run(before, mayEndInIPv4: false),
      let last = behind.isEmpty ? [] : run(behind),
      first.count + last.count < 8
    else { return nil }
    return first + Array(repeating: 0, count: 8 - first.count - last.count) + last
  }

  /// Reads groups between single colons. The last two may be written as an IPv4 address.
  private static func run(_ bytes: ArraySlice<UInt8>, mayEndInIPv4: Bool = true) -> [UInt16]? {
    let parts = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    var groups: [UInt16] = []
    for (index, part) in parts.enumerated() {
      if mayEndInIPv4, index == parts.count - 1, let address = dottedDecimal(part) {
        groups += [UInt16(address >> 16), UInt16(truncatingIfNeeded: address)]
      } else {
        let digits = part.compactMap(ASCII.hexDigit)
        guard 1...4 ~= part.count, digits.count == part.count else { return nil }
        groups.append(digits.reduce(0) { $0 << 4 | UInt16($1) })
      }
    }
    return groups
  }
}
