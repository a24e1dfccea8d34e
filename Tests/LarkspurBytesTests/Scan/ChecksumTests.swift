import LarkspurBytes
import Testing

@Suite struct ChecksumTests {
  /// Every changed bit changes the checksum, and so does a zero byte appended at the end.
  @Test func everyChangeShows() {
    for count in 0...40 {
      let bytes = (0..<count).map { UInt8($0) }
      let sum = Checksum.of(bytes.span)
      #expect(Checksum.of(Array(bytes).span) == sum)
      #expect(Checksum.of((bytes + [0]).span) != sum, "\(count) bytes")
      for index in bytes.indices {
        for bit in 0..<8 {
          var other = bytes
          other[index] ^= 1 << bit
          #expect(Checksum.of(other.span) != sum, "byte \(index) of \(count)")
        }
      }
    }
  }

  /// Two words that change places change the checksum.
  @Test func orderCounts() {
    let (one, two) = ([UInt8](repeating: 1, count: 8), [UInt8](repeating: 2, count: 8))
    #expect(Checksum.of((one + two).span) != Checksum.of((two + one).span))
  }
}
