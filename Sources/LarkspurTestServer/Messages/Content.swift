import LarkspurCoding

extension TestServer {
  /// The bytes of `/bytes/N` and its relatives, at these offsets.
  ///
  /// The byte at an offset is always the same, so that a part of the content can be checked without the rest. It looks
  /// random and repeats after 65,521 bytes, a prime: bytes that went to the wrong offset show.
  public static func content(_ range: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    Content.forEachRange(in: range) { bytes.append(contentsOf: Content.block[$0]) }
    return bytes
  }

  /// The first `count` bytes of the content.
  public static func content(count: Int) -> [UInt8] { content(0..<max(count, 0)) }

  /// The checksum of the first `count` bytes of the content, in constant memory.
  public static func contentChecksum(count: Int) -> Checksum {
    var checksum = Checksum()
    Content.forEachRun(in: 0..<max(count, 0)) { checksum.update($0) }
    return checksum
  }

  /// The CRC-32 of a stream of bytes (the one of gzip and zip), to compare what arrived with what was sent.
  public struct Checksum: Hashable, Sendable, CustomStringConvertible {
    private var sum = CRC32()

    public init() {}

    public init(_ bytes: [UInt8]) {
      update(bytes)
    }

    public var value: UInt32 { sum.value }

    /// Eight hexadecimal digits.
    public var description: String { hexadecimal(value) }

    /// Takes in the next bytes of the stream.
    public mutating func update(_ bytes: [UInt8]) { sum.update(bytes.span) }

    /// Takes in the next bytes of the stream.
    public mutating func update(_ bytes: Span<UInt8>) { sum.update(bytes) }
  }
}

/// The content, from which every body of a given size is cut.
enum Content {
  static let period = 65_521

  /// Two periods, so that a run of one period's length can start anywhere.
  static let block: [UInt8] = {
    var state: UInt64 = 0x4c61_726b_7370_7572
    let once = (0..<period).map { _ in
      // Knuth's MMIX generator; the high bits are the good ones.
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
    return once + once
  }()

  /// Calls with ranges of `block` which, in order, are the content at these offsets.
  static func forEachRange<E: Error>(
    in range: Range<Int>, atMost runMax: Int = period, _ body: (Range<Int>) throws(E) -> Void
  ) throws(E) {
    var offset = max(range.lowerBound, 0)
    while offset < range.upperBound {
      let start = offset % period
      let count = min(range.upperBound - offset, runMax, period)
      try body(start..<start + count)
      offset += count
    }
  }

  /// Calls with the content at these offsets, about 64 KiB at a time.
  static func forEachRun<E: Error>(in range: Range<Int>, _ body: (Span<UInt8>) throws(E) -> Void) throws(E) {
    let block = block
    try forEachRange(in: range) { (run) throws(E) in try body(block.span.extracting(run)) }
  }
}
