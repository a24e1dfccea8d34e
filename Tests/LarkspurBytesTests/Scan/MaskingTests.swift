import LarkspurBytes
import TestKit
import Testing

/// Masking sixteen bytes at a time agrees with a loop over single bytes.
@Suite struct MaskingTests {
  private static let key: [UInt8] = [0x37, 0xfa, 0x21, 0x3d]
  private static let mask: UInt32 = 0x37fa_213d

  /// Masks `range` as RFC 6455 5.3 defines it.
  private static func naive(_ bytes: [UInt8], _ offset: Int, _ range: Range<Int>) -> [UInt8] {
    var bytes = bytes
    for (position, index) in range.enumerated() { bytes[index] ^= key[(offset + position) % 4] }
    return bytes
  }

  /// At every alignment and offset in the key, and for every length, the range is masked and nothing beside it.
  @Test func everyAlignmentAndLength() {
    let bytes = (0..<160).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    var wrong: [String] = []
    for start in 0..<20 {
      for count in 0...100 {
        for offset in 0..<5 {
          let range = start..<start + count
          var masked = bytes
          Masking.apply(Self.mask, offset: offset, to: &masked, in: range)
          if masked != Self.naive(bytes, offset, range) { wrong.append("\(range), offset \(offset)") }
          Masking.apply(Self.mask, offset: offset, to: &masked, in: range)
          if masked != bytes { wrong.append("twice: \(range), offset \(offset)") }
        }
      }
    }
    #expect(wrong == [])
  }

  /// A payload in pieces is masked as the whole payload is.
  @Test func pieces() {
    let bytes = (0..<80).map { UInt8(truncatingIfNeeded: $0 &* 11) }
    let whole = Self.naive(bytes, 0, 0..<80)
    for cut in 0...80 {
      var masked = bytes
      Masking.apply(Self.mask, to: &masked, in: 0..<cut)
      Masking.apply(Self.mask, offset: cut, to: &masked, in: cut..<80)
      #expect(masked == whole, "cut at \(cut)")
    }
  }

  /// Offsets and ranges outside their bounds trap nowhere.
  @Test func beyondTheBytes() {
    var none: [UInt8] = []
    Masking.apply(Self.mask, to: &none, in: 0..<10)
    #expect(none.isEmpty)
    var bytes = [UInt8](repeating: 0, count: 6)
    Masking.apply(Self.mask, to: &bytes, in: 4..<100)
    #expect(bytes == [0, 0, 0, 0, 0x37, 0xfa])
    Masking.apply(Self.mask, to: &bytes, in: 50..<100)
    #expect(bytes == [0, 0, 0, 0, 0x37, 0xfa])
    for offset in [Int.max, Int.min, -1] {
      var masked: [UInt8] = [0]
      Masking.apply(Self.mask, offset: offset, to: &masked, in: 0..<1)
      #expect(masked == [Self.key[offset & 3]])
    }
  }

  /// The masked "Hello" of RFC 6455 5.7.
  @Test func example() {
    var text = Array("Hello".utf8)
    Masking.apply(Self.mask, to: &text, in: 0..<5)
    #expect(text == [0x7f, 0x9f, 0x4d, 0x51, 0x58])
  }
}
