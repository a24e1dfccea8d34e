import CAllocations
import LarkspurCoding
import TestKit
import Testing

@Suite struct DecompressorTests {
  let text = Array("The same, the same, the same, and then something else: 0123456789.\n".utf8)

  func coded(_ bytes: [UInt8], _ codings: [ContentCoding]) throws -> [UInt8] {
    try codings.reduce(bytes) { try compressed($0, as: $1 == .gzip ? .gzip : .zlib) }
  }

  @Test(
    arguments: [
      [], [.gzip], [.deflate], [.gzip, .deflate], [.deflate, .gzip], [.gzip, .gzip, .gzip, .gzip, .gzip],
    ] as [[ContentCoding]])
  func layers(codings: [ContentCoding]) throws {
    let body = try coded(text, codings)
    for pieces in [[body[...]], single(body)] {
      for room in [1, 3, 100, 65536] {
        let decoding = Decoding(pieces, codings, room: room)
        #expect(decoding.output == text && decoding.error == nil)
      }
    }
  }

  @Test func rawDeflate() throws {
    for level in [0, 1, 9] {
      var compressor = try Compressor(.rawDeflate, level: level)
      var body: [UInt8] = []
      try compressor.compress(text.span, into: &body)
      try compressor.finish(into: &body)
      #expect(try decompressed(body, [.deflate]) == text)
      #expect(Decoding(single(body), [.deflate], room: 1).output == text)
    }
    // The shortest possible stream.
    #expect(try decompressed([3, 0], [.deflate]) == [])
    #expect(Decoding([[3]], [.deflate]).error == .peerSentTruncated(.deflate))
  }

  /// Decodes 1.2 million incompressible bytes, which is far more than a stage or a step holds.
  @Test func longBodies() throws {
    var generator = SeededGenerator(seed: 1)
    let long = (0..<1_200_000).map { _ in UInt8.random(in: 0...15, using: &generator) }
    for codings in [[.gzip], [.deflate, .gzip, .deflate]] as [[ContentCoding]] {
      let body = try coded(long, codings)
      let whole = Decoding([body[...]], codings)
      #expect(whole.error == nil)
      #expect(whole.output == long)
      let pieces = stride(from: 0, to: body.count, by: 16_384).map { body[$0..<min($0 + 16_384, body.count)] }
      #expect(Decoding(pieces, codings).output == long)
    }
  }

  @Test func everyTruncationIsAnError() throws {
    for codings in [[.gzip], [.deflate], [.gzip, .deflate]] as [[ContentCoding]] {
      let body = try coded(text, codings)
      for count in 1..<body.count {
        let decoding = Decoding([body[..<count]], codings)
        // The inner stream is decoded first, and found to be truncated last.
        #expect(decoding.error.map { if case .peerSentTruncated = $0 { true } else { false } } == true, "\(count)")
        #expect(text.starts(with: decoding.output))
      }
    }
  }

  @Test(arguments: [[], [.gzip], [.deflate], [.gzip, .deflate, .gzip]] as [[ContentCoding]])
  func noBytesAtAll(codings: [ContentCoding]) {
    for pieces in [[], [[]], [[], []]] as [[ArraySlice<UInt8>]] {
      let decoding = Decoding(pieces, codings)
      #expect(decoding.output == [] && decoding.error == nil)
    }
  }

  @Test func anInnerBodyOfNoBytes() throws {
    // Servers send this for an empty file whose script has already declared it as gzip.
    let decoding = Decoding([try compressed([], as: .gzip)[...]], [.gzip, .gzip])
    #expect(decoding.output == [] && decoding.error == nil)
  }

  @Test func members() throws {
    let one = try compressed(text, as: .gzip)
    let none = try compressed([], as: .gzip)
    for body in [one + none, none + one, none + none + one + none] {
      #expect(Decoding(single(body), [.gzip]).output == text)
      #expect(Decoding([body[...]], [.gzip]).error == nil)
    }
    // A second member that is cut or damaged is an error; bytes that are not the beginning of a member are garbage.
    #expect(Decoding([(one + one.dropLast())[...]], [.gzip]).error == .peerSentTruncated(.gzip))
    #expect(Decoding([(one + [0x1f, 0x8b, 8])[...]], [.gzip]).error == .peerSentTruncated(.gzip))
    #expect(Decoding([(one + [0x1f, 0x8b, 8, 0xe0])[...]], [.gzip]).error == .peerSentInvalid(.gzip))
    for garbage in [[0x1f], [0x1f, 0x8b], [0x1f, 0x8b, 7], [0], [13, 10], Array(one[1...])] as [[UInt8]] {
      for pieces in [[(one + garbage)[...]], single(one + garbage)] {
        let decoding = Decoding(pieces, [.gzip])
        #expect(decoding.output == text && decoding.error == nil, "\(garbage)")
      }
    }
    // After garbage, no further members are decoded.
    #expect(Decoding([(one + [0] + one)[...]], [.gzip]).output == text)
  }

  @Test func garbageBehindDeflate() throws {
    for format in [CompressionFormat.zlib, .rawDeflate] {
      let body = try compressed(text, as: format)
      for garbage in [[0], body] as [[UInt8]] {
        let decoding = Decoding(single(body + garbage), [.deflate])
        #expect(decoding.output == text && decoding.error == nil)
      }
    }
  }

  @Test func whatIsNoStream() throws {
    #expect(Decoding([text[...]], [.gzip]).error == .peerSentInvalid(.gzip))
    #expect(Decoding([[0xff, 0xff]], [.deflate]).error == .peerSentInvalid(.deflate))
    // A preset dictionary (RFC 1950, FDICT), which the decoder does not have.
    #expect(Decoding([[0x78, 0xbb, 1, 2, 3, 4, 3, 0]], [.deflate]).error == .peerSentInvalid(.deflate))
    // The wrong checksum.
    var body = try compressed(text, as: .zlib)
    body[body.count - 1] ^= 1
    #expect(Decoding([body[...]], [.deflate]).error == .peerSentInvalid(.deflate))
    // Declared as gzip, but zlib.
    #expect(Decoding([try compressed(text, as: .zlib)[...]], [.gzip]).error == .peerSentInvalid(.gzip))
  }

  @Test func aConsumedBeyondTheInput() throws {
    var decompressor = try Decompressor([.gzip])
    var output: [UInt8] = []
    for wrong in [-1, text.count + 1] {
      var consumed = wrong
      do throws(CodingError) {
        _ = try decompressor.decode(text.span, consumed: &consumed, appendingTo: &output)
        Issue.record("\(wrong) was taken")
      } catch {
        #expect(error == .internalInconsistency(zlib: 0))
      }
    }
  }

  /// A step without room for output reports `hasMore`, and later steps lose nothing.
  @Test func noRoom() throws {
    let body = try compressed(text, as: .gzip)
    var decompressor = try Decompressor([.gzip])
    var output: [UInt8] = []
    var consumed = 0
    let progress = try decompressor.decode(body.span, consumed: &consumed, appendingTo: &output, atMost: 0)
    #expect(progress == .hasMore && output == [])
    while try decompressor.decode(body.span, consumed: &consumed, appendingTo: &output) == .hasMore {}
    try decompressor.finish()
    #expect(output == text)
    let (bytesIn, bytesOut) = (decompressor.bytesIn, decompressor.bytesOut)
    #expect(bytesIn == body.count && bytesOut == text.count)
  }

  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc"))
  func noAllocationOnceWarm() throws {
    let long = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 5) }
    let member = try coded(long, [.deflate, .gzip])
    let pieces = stride(from: 0, to: member.count, by: 100).map { Array(member[$0..<min($0 + 100, member.count)]) }
    var decompressor = try Decompressor([.deflate, .gzip])
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 16)
    defer { room.deallocate() }
    func feed(_ piece: [UInt8]) throws {
      var consumed = 0
      var progress = Decompressor.Progress.hasMore
      while progress == .hasMore {
        var output = OutputRawSpan(buffer: room, initializedCount: 0)
        progress = try decompressor.decode(piece.span, consumed: &consumed, into: &output)
        _ = output.finalize(for: room)
      }
    }
    let warm = pieces.count / 4
    for index in 0..<warm { try feed(pieces[index]) }
    let before = larkspur_allocations()
    // Iterates by index: in a debug build a slice of an array allocates for each element.
    for index in warm..<pieces.count { try feed(pieces[index]) }
    let allocations = larkspur_allocations() - before
    #expect(allocations == 0)
    try decompressor.finish()
    let bytesOut = decompressor.bytesOut
    #expect(bytesOut == 400_000)
  }
}
