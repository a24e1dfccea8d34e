import LarkspurCoding

extension TestServer {
  /// Returns the bytes of `/bytes/N` and its relatives at these offsets.
  ///
  /// The byte at an offset is always the same, so that a part of the content can be checked without the rest. The
  /// content looks random and repeats after 65,521 bytes, a prime number, so that bytes at a wrong offset show.
  public static func content(_ range: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    Content.forEachRange(in: range) { bytes.append(contentsOf: Content.block[$0]) }
    return bytes
  }

  /// Returns the first `count` bytes of the content.
  public static func content(count: Int) -> [UInt8] { content(0..<max(count, 0)) }

  /// Returns the checksum of the first `count` bytes of the content, in constant memory.
  public static func contentChecksum(count: Int) -> Checksum {
    var checksum = Checksum()
    Content.forEachRun(in: 0..<max(count, 0)) { checksum.update($0) }
    return checksum
  }

  /// The CRC-32 of a stream of bytes, as in gzip and zip, to compare the received bytes with the sent ones.
  public struct Checksum: Hashable, Sendable, CustomStringConvertible {
    private var sum = CRC32()

    /// Creates the checksum of no bytes.
    public init() {}

    /// Creates the checksum of these bytes.
    public init(_ bytes: [UInt8]) {
      update(bytes)
    }

    /// The checksum of all bytes so far.
    public var value: UInt32 { sum.value }

    /// The value as eight hexadecimal digits.
    public var description: String { hexadecimal(value) }

    /// Adds the next bytes of the stream.
    public mutating func update(_ bytes: [UInt8]) { sum.update(bytes.span) }

    /// Adds the next bytes of the stream.
    public mutating func update(_ bytes: Span<UInt8>) { sum.update(bytes) }
  }
}

/// The content from which the body of any size is cut.
enum Content {
  static let period = 65_521

  /// Two periods of the content, so that a run of one period's length can start anywhere.
  static let block: [UInt8] = {
    var state: UInt64 = 0x4c61_726b_7370_7572
    let once = (0..<period).map { _ in
      // Knuth's MMIX generator. Its high bits are the most random.
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
    return once + once
  }()

  /// Calls `body` with ranges of `block` that, in order, are the content at these offsets.
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

  /// Calls `body` with the content at these offsets, about 64 KiB at a time.
  static func forEachRun<E: Error>(in range: Range<Int>, _ body: (Span<UInt8>) throws(E) -> Void) throws(E) {
    let block = block
    try forEachRange(in: range) { (run) throws(E) in try body(block.span.extracting(run)) }
  }
}
