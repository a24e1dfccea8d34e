// Writes the encoding of certificates (ITU-T X.690), as far as the test server needs it. Nothing here reads it.

enum DER {
  static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { [tag] + length(content.count) + content }

  private static func length(_ count: Int) -> [UInt8] {
    if count < 0x80 { return [UInt8(count)] }
    let bytes = bigEndian(count)
    return [0x80 | UInt8(bytes.count)] + bytes
  }

  /// Returns the bytes of a number without leading zeros, at least one byte.
  private static func bigEndian(_ value: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = UInt(bitPattern: value)
    repeat {
      bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
      rest >>= 8
    } while rest > 0
    return bytes
  }

  static func sequence(_ elements: [UInt8]...) -> [UInt8] { element(0x30, Array(elements.joined())) }
  static func sequence(of elements: [[UInt8]]) -> [UInt8] { element(0x30, Array(elements.joined())) }
  static func set(_ content: [UInt8]) -> [UInt8] { element(0x31, content) }
  /// Returns the element `[number]` with other elements inside (explicit tagging).
  static func tagged(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { element(0xa0 | number, content) }
  /// Returns a primitive element with the tag `[number]` instead of its universal tag (implicit tagging).
  static func implicit(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { element(0x80 | number, content) }

  static func boolean(_ value: Bool) -> [UInt8] { element(0x01, [value ? 0xff : 0]) }
  static let null: [UInt8] = [0x05, 0]
  static func octets(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }
  static func text(_ text: String) -> [UInt8] { element(0x0c, Array(text.utf8)) }
  static func enumerated(_ value: UInt8) -> [UInt8] { element(0x0a, [value]) }

  /// Returns a number that is zero or more. A negative number becomes zero.
  static func integer(_ value: Int) -> [UInt8] {
    let bytes = bigEndian(max(value, 0))
    return integer(bytes: bytes[0] < 0x80 ? bytes : [0] + bytes)
  }

  /// Returns a number whose bytes are given: two's complement, highest byte first.
  static func integer(bytes: [UInt8]) -> [UInt8] { element(0x02, bytes) }

  static func bits(_ bytes: [UInt8], unused: UInt8 = 0) -> [UInt8] { element(0x03, [unused] + bytes) }

  /// Returns named bits, of which bit 0 is the first. Trailing zero bits are left out.
  static func namedBits(_ set: some Sequence<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    var last = -1
    for bit in set where bit >= 0 {
      while bytes.count <= bit / 8 { bytes.append(0) }
      bytes[bit / 8] |= 0x80 >> UInt8(bit % 8)
      last = max(last, bit)
    }
    return bits(bytes, unused: last < 0 ? 0 : UInt8(7 - last % 8))
  }

  /// - Returns: The encoding of an object identifier such as `1.2.840.113549`, or `nil` if the text is not one.
  static func object(_ dotted: String) -> [UInt8]? {
    let arcs = dotted.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) ?? -1 }
    guard arcs.count >= 2, arcs.allSatisfy({ $0 >= 0 && $0 < 1 << 40 }), arcs[0] <= 2, arcs[0] == 2 || arcs[1] < 40
    else { return nil }
    var content: [UInt8] = []
    for arc in [arcs[0] * 40 + arcs[1]] + arcs[2...] {
      var groups = [UInt8(arc & 0x7f)]
      var rest = arc >> 7
      while rest > 0 {
        groups.insert(0x80 | UInt8(rest & 0x7f), at: 0)
        rest >>= 7
      }
      content += groups
    }
    return element(0x06, content)
  }

  // MARK: Time

  /// Returns a time as RFC 5280, section 4.1.2.5 requires: two digits for the years 1950 to 2049, four for all others.
  static func time(_ seconds: Int) -> [UInt8] {
    let (year, digits) = calendar(seconds)
    guard (1950..<2050).contains(year) else { return generalizedTime(seconds) }
    return element(0x17, Array((twoDigits(year % 100) + digits).utf8))
  }

  static func generalizedTime(_ seconds: Int) -> [UInt8] {
    let (year, digits) = calendar(seconds)
    return element(0x18, Array((twoDigits(year / 100) + twoDigits(year % 100) + digits).utf8))
  }

  /// Returns the year and `MMDDhhmmssZ` of a time in seconds since 1970. The result is limited to the years 0 to 9999.
  private static func calendar(_ seconds: Int) -> (year: Int, digits: String) {
    let seconds = min(max(seconds, -62_167_219_200), 253_402_300_799)
    let time = ((seconds % 86_400) + 86_400) % 86_400
    // Counts days from 1 March of the year 0, so that a leap day is the last day of its year.
    let days = (seconds - time) / 86_400 + 719_468
    let era = (days >= 0 ? days : days - 146_096) / 146_097
    let dayOfEra = days - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let parts = [month, day, time / 3600, time / 60 % 60, time % 60]
    return (year, parts.map(twoDigits).joined() + "Z")
  }

  private static func twoDigits(_ value: Int) -> String { (value < 10 ? "0" : "") + String(value) }
}
