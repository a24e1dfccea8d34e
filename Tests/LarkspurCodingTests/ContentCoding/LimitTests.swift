import LarkspurCoding
import Testing

/// Each limit: at its value, and one past it.
@Suite struct CodingLimitTests {
  /// Limits the number of nested codings (CVE-2022-32206, CVE-2025-66418) over all field lines
  /// together (CVE-2023-23916).
  @Test func layers() throws {
    let body = try (0..<6).reduce([1, 2, 3]) { body, _ in try compressed(body, as: .gzip) }
    #expect(CodingLimits().layersMax == 5)
    #expect(Decoding([body[...]], Array(repeating: .gzip, count: 5)).output == (try compressed([1, 2, 3], as: .gzip)))
    #expect(Decoding([body[...]], Array(repeating: .gzip, count: 6)).error == .peerSentTooManyLayers)
    // Codings are counted over all lines, and identity is not counted.
    #expect(
      try ContentCodings(fieldValues: ["gzip, identity, deflate", "x-gzip", "", "gzip ,, deflate"]).layers.count == 5)
    #expect(throws: CodingError.peerSentTooManyLayers) {
      try ContentCodings(fieldValues: ["gzip, deflate", "gzip", "gzip, deflate", "gzip"])
    }
    // An unknown coding among them does not lift the limit.
    #expect(throws: CodingError.peerSentTooManyLayers) {
      try ContentCodings(fieldValues: ["br", "gzip,gzip,gzip,gzip,gzip,gzip"])
    }
  }

  @Test func expansion() throws {
    var limits = CodingLimits()
    limits.bytesOutAlways = 0
    let body = try compressed([UInt8](repeating: 0, count: 100_000), as: .gzip)
    let ratio = UInt64((100_000 + body.count - 1) / body.count)
    limits.expansionMax = ratio
    #expect(Decoding([body[...]], [.gzip], limits: limits).error == nil)
    limits.expansionMax = ratio - 1
    #expect(Decoding([body[...]], [.gzip], limits: limits).error == .peerSentBomb)
    limits.expansionMax = .max
    #expect(Decoding([body[...]], [.gzip], limits: limits).error == nil)
  }

  @Test func whatIsAlwaysAllowed() throws {
    var limits = CodingLimits()
    limits.expansionMax = 1
    limits.bytesOutAlways = 100_000
    let body = try compressed([UInt8](repeating: 0, count: 100_000), as: .gzip)
    for pieces in [[body[...]], single(body)] {
      let decoding = Decoding(pieces, [.gzip], limits: limits)
      #expect(decoding.error == nil && decoding.output.count == 100_000)
    }
    limits.bytesOutAlways = 99_999
    #expect(Decoding([body[...]], [.gzip], limits: limits).error == .peerSentBomb)
  }

  /// Ten MiB of zeros pass although they take less than a thousandth of that on the wire, and no step produces more
  /// than its room (CVE-2025-66471: a small input expanded in one step to everything that it stands for).
  @Test func tenMebibytes() throws {
    let body = try compressed([UInt8](repeating: 0, count: 10 << 20), as: .gzip)
    #expect(body.count * 1000 < 10 << 20)
    let decoding = Decoding([body[...]], [.gzip])
    #expect(decoding.error == nil && decoding.output.count == 10 << 20)
    // A step produces no more than its room, whatever its input.
    #expect(decoding.steps >= (10 << 20) / Decompressor.stepBytes)
    let more = try compressed([UInt8](repeating: 0, count: 11 << 20), as: .gzip)
    #expect(Decoding([more[...]], [.gzip]).error == .peerSentBomb)
  }

  /// A bomb within a bomb: the inner stream fails after no more than the always allowed bytes and one step.
  @Test func nestedBombs() throws {
    var compressor = try Compressor(.gzip)
    var inner: [UInt8] = []
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    for _ in 0..<64 { try compressor.compress(zeros.span, into: &inner) }
    try compressor.finish(into: &inner)
    let nested = try compressed(try compressed(inner, as: .gzip), as: .gzip)
    for pieces in [[nested[...]], single(nested)] {
      let decoding = Decoding(pieces, [.gzip, .gzip, .gzip])
      #expect(decoding.error == .peerSentBomb)
      #expect(decoding.output.count <= 10 << 20)
    }
  }

  /// Discarded output counts as well: here an outer stream expands after the end of the inner one.
  @Test func swellingGarbage() throws {
    let end = try compressed([1, 2, 3], as: .gzip)
    let outer = try compressed(end + [UInt8](repeating: 0, count: 12 << 20), as: .gzip)
    #expect(Decoding([outer[...]], [.gzip, .gzip]).error == .peerSentBomb)
  }
}
