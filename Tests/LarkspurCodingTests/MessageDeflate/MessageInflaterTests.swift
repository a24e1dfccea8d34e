import CAllocations
import LarkspurCoding
import TestKit
import Testing

@Suite struct MessageInflaterTests {
  static let hello = Array("Hello".utf8)
  /// Section 7.2.3.1 of RFC 7692.
  static let oneBlock: [UInt8] = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]
  /// Section 7.2.3.2: the message after `oneBlock`, which refers back to it.
  static let shared: [UInt8] = [0xf2, 0x00, 0x11, 0x00, 0x00]
  /// Section 7.2.3.4.
  static let final: [UInt8] = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00]

  /// The payloads of "Hello" in sections 7.2.3.1 and 7.2.3.3 to 7.2.3.5, and those of no byte.
  static let vectors: [(payload: [UInt8], message: [UInt8])] = [
    (oneBlock, hello),
    ([0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00], hello),
    (final, hello),
    ([0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00], hello),
    // Section 7.2.3.6, and a final block without content before it.
    ([0x00], []), ([0x03, 0x00, 0x00], []),
    // An empty stored block with BFINAL at the end: bit 2 of the last byte.
    ([0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x04], hello), ([0x01], []),
  ]

  /// Each vector in two fragments with each cut, byte by byte, twice in one connection, and with room for one byte.
  @Test(arguments: vectors) func theVectorsOfTheStandard(payload: [UInt8], message: [UInt8]) throws {
    for windowBits in MessageDeflate.windowBits {
      for takesOver in [true, false] {
        for room in [1, 5, 100] {
          var inflater = try MessageInflater(windowBits: windowBits, takesOver: takesOver)
          var fragmentations = payload.indices.map { [payload[..<$0], payload[$0...]] }
          fragmentations += [[payload[...]], single(payload), [payload[...], []], [[], [], payload[...]]]
          for fragments in fragmentations {
            let inflated = InflatedMessage(fragments, &inflater, room: room)
            #expect(inflated.output == message && inflated.error == nil)
          }
        }
      }
    }
  }

  /// Section 7.2.3.2: the second message refers back to the first.
  @Test func sharedWindow() throws {
    var inflater = try MessageInflater(windowBits: 8, takesOver: true)
    #expect(InflatedMessage([Self.oneBlock[...]], &inflater).output == Self.hello)
    for _ in 0..<3 { #expect(InflatedMessage([Self.shared[...]], &inflater).output == Self.hello) }
    // Without takeover there is nothing to refer back to.
    var other = try MessageInflater(windowBits: 15, takesOver: false)
    #expect(InflatedMessage([Self.oneBlock[...]], &other).output == Self.hello)
    #expect(InflatedMessage([Self.shared[...]], &other).error == .peerSentInvalidMessage)
  }

  /// The window outlasts a block with BFINAL, within a message and from one message to the next.
  @Test func theWindowOutlastsAFinalBlock() throws {
    for fragments in [[(Self.final.dropLast() + Self.shared)[...]], single(Self.final.dropLast() + Self.shared)] {
      var inflater = try MessageInflater(windowBits: 15, takesOver: true)
      #expect(InflatedMessage(fragments, &inflater).output == Self.hello + Self.hello)
      #expect(InflatedMessage([Self.final[...]], &inflater).output == Self.hello)
      #expect(InflatedMessage([Self.shared[...]], &inflater).output == Self.hello)
      #expect(InflatedMessage([Self.final.dropLast()], &inflater).output == Self.hello)
      #expect(InflatedMessage([Self.shared[...]], &inflater, room: 1).output == Self.hello)
    }
  }

  /// A message that ends between two blocks is complete, and the next one begins as if it had its tail.
  @Test(
    arguments: [
      ([], []), (Array(final.dropLast()), hello), ([0x03, 0x00], []), (oneBlock + [0x00, 0x00, 0xff, 0xff], hello),
      ([0x00, 0x00, 0x00, 0xff, 0xff], []),
    ] as [([UInt8], [UInt8])])
  func endsWithoutAHeader(payload: [UInt8], message: [UInt8]) throws {
    for takesOver in [true, false] {
      for room in [1, 5, 100] {
        var inflater = try MessageInflater(windowBits: 15, takesOver: takesOver)
        for fragments in [[payload[...]], [payload[...], []], single(payload) + [[]]] {
          let inflated = InflatedMessage(fragments, &inflater, room: room)
          #expect(inflated.output == message && inflated.error == nil)
          #expect(InflatedMessage([Self.oneBlock[...]], &inflater, room: room).output == Self.hello)
          if takesOver { #expect(InflatedMessage([Self.shared[...]], &inflater, room: room).output == Self.hello) }
        }
      }
    }
  }

  @Test func everyTruncationIsAnError() throws {
    var generator = SeededGenerator(seed: 7)
    for level in [0, 1, 6] {
      for kind in Messages.Kind.allCases {
        let message = Messages.make(kind, 700, &generator)
        var deflater = try MessageDeflater(windowBits: 15, takesOver: false, level: level)
        var payload: [UInt8] = []
        try deflater.deflate(message.span, into: &payload)
        for count in 1..<payload.count {
          let inflated = try InflatedMessage(Array(payload[..<count]))
          // A stored block begins like the empty message, and ends on a byte boundary, where the last byte may lack.
          let isMessage = payload[0] == 0 && (count == 1 || count == payload.count - 1)
          #expect(inflated.error == (isMessage ? nil : .peerSentTruncatedMessage), "\(kind) cut at \(count)")
          #expect(message.starts(with: inflated.output))
        }
      }
    }
    for count in 1..<Self.oneBlock.count {
      #expect(try InflatedMessage(Array(Self.oneBlock[..<count])).error == .peerSentTruncatedMessage)
    }
  }

  @Test(
    arguments: [
      // The reserved type of block, a wrong complement of a length, a distance before the beginning, text.
      [0x07], [0x06, 0x00], [0x00, 0x05, 0x00, 0xfa, 0xfe, 0x48], shared, Array("GET / HTTP/1.1".utf8),
      // Something wrong after a final block, and in the second of two blocks.
      final.dropLast() + [0x07], oneBlock + [0x00, 0x00, 0xff, 0xff, 0x07],
    ] as [[UInt8]])
  func whatIsNotDeflate(payload: [UInt8]) throws {
    #expect(try InflatedMessage(payload).error == .peerSentInvalidMessage)
    var inflater = try MessageInflater(windowBits: 15, takesOver: true)
    #expect(InflatedMessage(single(payload), &inflater, room: 1).error == .peerSentInvalidMessage)
  }

  /// Random bytes, and payloads with one bit changed: a message or an error, and never more than the limit.
  @Test func garbage() throws {
    var generator = SeededGenerator(for: "garbage in messages")
    var deflater = try MessageDeflater(windowBits: 15, takesOver: false)
    var (ended, failed) = (0, 0)
    for round in 0..<2000 {
      var payload = Messages.make(.random, Int.random(in: 0..<60, using: &generator), &generator)
      if round % 2 == 0 {
        payload = []
        let message = Messages.make(.text, Int.random(in: 1..<400, using: &generator), &generator)
        try deflater.deflate(message.span, into: &payload)
        let index = Int.random(in: 0..<payload.count, using: &generator)
        payload[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      }
      let inflated = try InflatedMessage(payload, atMost: 1000)
      switch inflated.error {
      case nil: ended += 1
      case .peerSentInvalidMessage, .peerSentTruncatedMessage, .peerSentMessageTooLong: failed += 1
      case let error: Issue.record("\(String(describing: error)): \(payload)")
      }
      #expect(inflated.output.count <= 1000)
    }
    #expect(ended > 0 && failed > 1000)
  }

  /// A reference that goes back further than the window that the peers have agreed on.
  @Test func beyondTheWindow() throws {
    var generator = SeededGenerator(seed: 3)
    let phrase = Messages.make(.random, 200, &generator)
    let message = phrase + Messages.make(.random, 400, &generator) + phrase
    var deflater = try MessageDeflater(windowBits: 15, takesOver: true)
    var payload: [UInt8] = []
    try deflater.deflate(message.span, into: &payload)
    #expect(try InflatedMessage(payload, windowBits: 10, room: 1).output == message)
    for windowBits in [8, 9] {
      #expect(try InflatedMessage(payload, windowBits: windowBits, room: 1).error == .peerSentInvalidMessage)
    }
  }

  @Test func wrongArguments() throws {
    for windowBits in [-1, 0, 7, 16, .max, .min] {
      #expect(throws: CodingError.internalInconsistency(zlib: 0)) {
        _ = try MessageInflater(windowBits: windowBits, takesOver: true)
      }
      #expect(throws: CodingError.internalInconsistency(zlib: 0)) {
        _ = try MessageDeflater(windowBits: windowBits, takesOver: true)
      }
    }
    for wrong in [-1, Self.oneBlock.count + 1] {
      var inflater = try MessageInflater(windowBits: 15, takesOver: true)
      var consumed = wrong
      let payload = Self.oneBlock
      var output: [UInt8] = []
      #expect(throws: CodingError.internalInconsistency(zlib: 0)) {
        try inflater.inflate(
          payload.span, consumed: &consumed, isLast: true, atMost: 10, appendingTo: &output, room: 10)
      }
    }
  }

  /// A step without room for output reports `hasMore`, and later steps lose nothing.
  @Test func noRoom() throws {
    var inflater = try MessageInflater(windowBits: 15, takesOver: true)
    var consumed = 0
    let payload = Self.oneBlock
    var nothing = OutputRawSpan()
    let progress = try inflater.inflate(
      payload.span, consumed: &consumed, isLast: true, atMost: 10, into: &nothing)
    #expect(progress == .hasMore && consumed == 0)
    #expect(InflatedMessage([Self.oneBlock[...]], &inflater).output == Self.hello)
  }

  /// A connection without traffic, or with empty messages only, has no zlib streams. Once the first message has made
  /// the inflater's stream, a message allocates nothing.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc")) func allocations() throws {
    var sender = try MessageDeflater(windowBits: 15, takesOver: true)
    var payloads: [[UInt8]] = []
    for number in 0..<100 {
      let message = (0..<1000).map { UInt8(truncatingIfNeeded: ($0 + number) &* $0 >> 5) }
      var payload: [UInt8] = []
      try sender.deflate(message.span, into: &payload)
      payloads.append(payload)
    }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 16)
    defer { room.deallocate() }
    var output: [UInt8] = []
    output.reserveCapacity(10)

    var before = larkspur_allocations()
    var inflater = try MessageInflater(windowBits: 15, takesOver: true)
    var deflater = try MessageDeflater(windowBits: 15, takesOver: true)
    try deflater.deflate(Span(), into: &output)
    var consumed = 0
    var span = OutputRawSpan(buffer: room, initializedCount: 0)
    let progress = try inflater.inflate(Span(), consumed: &consumed, isLast: true, atMost: 10, into: &span)
    var allocations = larkspur_allocations() - before
    #expect(allocations == 0 && output == [0] && progress == .messageEnded)

    for index in payloads.indices {
      if index == 1 { before = larkspur_allocations() }
      let payload = payloads[index]
      var progress = MessageInflater.Progress.hasMore
      var consumed = 0
      while progress == .hasMore {
        var span = OutputRawSpan(buffer: room, initializedCount: 0)
        progress = try inflater.inflate(payload.span, consumed: &consumed, isLast: true, atMost: 1000, into: &span)
        _ = span.finalize(for: room)
      }
    }
    allocations = larkspur_allocations() - before
    #expect(allocations == 0)
  }
}
