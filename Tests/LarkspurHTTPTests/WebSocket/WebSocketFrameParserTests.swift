import FuzzOracles
import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

@Suite struct WebSocketFrameParserTests {
  /// The header and the payload of a frame, as the parser reports them.
  struct Frame: Equatable {
    var header: WebSocketFrameHeader
    var payload: [UInt8] = []
    var isComplete = false
  }

  struct Reading: Equatable {
    var frames: [Frame] = []
    var error: WebSocketFrameError?
  }

  static func read(
    _ pieces: [ArraySlice<UInt8>], role: WebSocketRole = .client, compression: Bool = false
  ) -> Reading {
    var parser = WebSocketFrameParser(role: role, allowsCompression: compression)
    var reading = Reading()
    for piece in pieces {
      let bytes = Array(piece)
      var consumed = 0
      do {
        events: while true {
          switch try parser.next(in: bytes.span, consumed: &consumed) {
          case .needMore: break events
          case .frame(let header): reading.frames.append(Frame(header: header))
          case .payload(let range, let endsFrame):
            reading.frames[reading.frames.count - 1].payload += bytes[range]
            reading.frames[reading.frames.count - 1].isComplete = endsFrame
          }
        }
        if consumed != bytes.count { Issue.record("\(bytes.count - consumed) bytes were left") }
      } catch {
        reading.error = error
        // The error stays.
        let more: [UInt8] = [0x81, 0]
        #expect(throws: error) { try parser.next(in: more.span, consumed: &consumed) }
        return reading
      }
    }
    return reading
  }

  /// Reads the bytes whole, byte by byte and at every split. The readings have to be equal.
  static func readEveryWay(
    _ bytes: [UInt8], role: WebSocketRole = .client, compression: Bool = false,
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> Reading {
    let whole = read(Cuts.whole(bytes), role: role, compression: compression)
    #expect(read(Cuts.single(bytes), role: role, compression: compression) == whole, sourceLocation: sourceLocation)
    for place in 0...min(bytes.count, 300) {
      let cut = read(Cuts.two(bytes, at: place), role: role, compression: compression)
      #expect(cut == whole, "cut at \(place)", sourceLocation: sourceLocation)
    }
    return whole
  }

  // MARK: - Frames

  /// The examples of RFC 6455 5.7.
  @Test func examples() {
    let text = Array("Hello".utf8)
    #expect(
      Self.readEveryWay([0x81, 0x05] + text).frames
        == [Frame(header: WebSocketFrameHeader(.text, length: 5), payload: text, isComplete: true)])
    #expect(
      Self.readEveryWay([0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f]).frames == [
        Frame(
          header: WebSocketFrameHeader(.text, isFinal: false, length: 3), payload: Array("Hel".utf8), isComplete: true),
        Frame(header: WebSocketFrameHeader(.continuation, length: 2), payload: Array("lo".utf8), isComplete: true),
      ])
    #expect(
      Self.readEveryWay([0x89, 0x05] + text).frames
        == [Frame(header: WebSocketFrameHeader(.ping, length: 5), payload: text, isComplete: true)])
    let masked: [UInt8] = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]
    #expect(
      Self.readEveryWay(masked, role: .server).frames == [
        Frame(
          header: WebSocketFrameHeader(.text, mask: 0x37fa_213d, length: 5), payload: Array(masked[6...]),
          isComplete: true)
      ])
  }

  /// At the limits of each encoding.
  @Test(arguments: [0, 1, 125, 126, 127, 65535, 65536, 70000]) func lengths(count: Int) {
    let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    var bytes: [UInt8] = []
    WebSocketFrameWriter.append(.binary, payload: payload.span, mask: nil, to: &bytes)
    bytes += [0x8a, 0x00]
    let header = WebSocketFrameHeader(.binary, length: count)
    let expected = [
      Frame(header: header, payload: payload, isComplete: true),
      Frame(header: WebSocketFrameHeader(.pong, length: 0), isComplete: true),
    ]
    #expect(Self.read(Cuts.whole(bytes)).frames == expected)
    for place in Array(0...16) + [count, count + 2, bytes.count - 1] where place < bytes.count {
      #expect(Self.read(Cuts.two(bytes, at: place)).frames == expected, "cut at \(place)")
    }
  }

  /// The largest length that may be announced: 63 bits.
  @Test func longest() {
    let header: [UInt8] = [0x82, 0x7f, 0x7f] + [UInt8](repeating: 0xff, count: 7)
    let reading = Self.readEveryWay(header + [1, 2, 3])
    #expect(reading.frames == [Frame(header: WebSocketFrameHeader(.binary, length: .max), payload: [1, 2, 3])])
    #expect(reading.error == nil)
  }

  /// Control frames stand between the fragments of a message.
  @Test func controlWithinMessage() {
    let reading = Self.readEveryWay([0x01, 0, 0x89, 0, 0x00, 0, 0x88, 0, 0x80, 0])
    #expect(reading.frames.map(\.header.opcode) == [.text, .ping, .continuation, .close, .continuation])
    #expect(reading.frames.map(\.isComplete) == [Bool](repeating: true, count: 5))
    #expect(reading.error == nil)
  }

  /// Each event is reported with the last byte that it needs: a frame with the end of its header, and the end of a frame
  /// with the end of its payload.
  @Test func earliestEvents() throws {
    var parser = WebSocketFrameParser(allowsCompression: false)
    let bytes: [UInt8] = [0x01, 0, 0x80, 1, 65]
    var found: [[WebSocketFrameParser.Event]] = []
    for index in bytes.indices {
      var consumed = 0
      found.append([])
      while true {
        let event = try parser.next(in: bytes.span.extracting(index..<index + 1), consumed: &consumed)
        if event == .needMore { break }
        found[index].append(event)
      }
    }
    #expect(
      found == [
        [],
        [.frame(WebSocketFrameHeader(.text, isFinal: false, length: 0)), .payload(1..<1, endsFrame: true)],
        [], [.frame(WebSocketFrameHeader(.continuation, length: 1))], [.payload(0..<1, endsFrame: true)],
      ])
  }

  @Test func compressed() {
    let reading = Self.readEveryWay([0x41, 0, 0x89, 0, 0x80, 0, 0xc2, 0, 0x81, 0], compression: true)
    #expect(reading.frames.map(\.header.isCompressed) == [true, false, false, true, false])
    #expect(reading.error == nil)
  }

  // MARK: - Refusals

  static let refused: [(bytes: [UInt8], error: WebSocketFrameError)] = [
    ([0x91], .reservedBits), ([0xa1], .reservedBits), ([0xb1], .reservedBits), ([0xa9], .reservedBits),
    ([0x83], .opcodeReserved(3)), ([0x84], .opcodeReserved(4)), ([0x85], .opcodeReserved(5)),
    ([0x86], .opcodeReserved(6)), ([0x87], .opcodeReserved(7)), ([0x8b], .opcodeReserved(11)),
    ([0x8c], .opcodeReserved(12)), ([0x8d], .opcodeReserved(13)), ([0x8e], .opcodeReserved(14)),
    ([0x8f], .opcodeReserved(15)),
    ([0x08], .controlFragmented), ([0x09], .controlFragmented), ([0x0a], .controlFragmented),
    ([0x88, 126], .controlTooLong), ([0x89, 126], .controlTooLong), ([0x8a, 127], .controlTooLong),
    ([0x81, 0x80], .maskUnexpected), ([0x89, 0x85], .maskUnexpected),
    ([0x80], .continuationUnexpected), ([0x00], .continuationUnexpected),
    ([0x81, 0, 0x80], .continuationUnexpected), ([0x01, 0, 0x80, 0, 0x80], .continuationUnexpected),
    ([0x01, 0, 0x81], .messageIncomplete), ([0x02, 0, 0x89, 0, 0x02], .messageIncomplete),
    ([0x81, 126, 0, 0], .lengthNotMinimal), ([0x81, 126, 0, 125], .lengthNotMinimal),
    ([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0], .lengthNotMinimal),
    ([0x81, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff], .lengthNotMinimal),
    ([0x81, 127, 0x80], .lengthTooLarge), ([0x81, 127, 0xff], .lengthTooLarge),
    ([0xc1], .compressionUnexpected(.text)), ([0xc2], .compressionUnexpected(.binary)),
  ]

  /// The error is found at the last byte of the row, and not before.
  @Test(arguments: refused.indices) func refuses(index: Int) {
    let row = Self.refused[index]
    #expect(Self.readEveryWay(row.bytes).error == row.error)
    #expect(Self.readEveryWay(row.bytes + [0x81, 0]).error == row.error)
    #expect(Self.read(Cuts.whole(row.bytes.dropLast())).error == nil)
  }

  @Test func maskMissing() {
    #expect(Self.readEveryWay([0x81, 0x05], role: .server).error == .maskMissing)
    #expect(Self.readEveryWay([0x8a, 0x00], role: .server).error == .maskMissing)
  }

  /// RFC 7692 6: with compression, RSV1 is allowed on the first frame of a message only.
  @Test(
    arguments: [
      ([0x41, 0, 0x40], .continuation), ([0x41, 0, 0xc0], .continuation), ([0xc8], .close), ([0xc9], .ping),
      ([0xca], .pong),
    ] as [([UInt8], WebSocketOpcode)])
  func compressionUnexpected(bytes: [UInt8], opcode: WebSocketOpcode) {
    #expect(Self.readEveryWay(bytes, compression: true).error == .compressionUnexpected(opcode))
  }

  @Test func descriptions() {
    let errors = Set(Self.refused.map(\.error) + [.maskMissing])
    #expect(Set(errors.map(\.description)).count == errors.count)
  }

  // MARK: - Oracle

  /// Frames in all variations, with a byte changed now and then, agree with a naive reading in all pieces.
  @Test func randomFrames() {
    var random = SeededGenerator(for: "WebSocketFrameParserTests.randomFrames")
    for round in 0..<1500 {
      let mode = UInt8.random(in: 0..<64, using: &random)
      var input = [mode] + (0..<3).map { _ in UInt8.random(in: 0...9, using: &random) }
      for _ in 0..<Int.random(in: 0...8, using: &random) {
        let opcode = WebSocketOpcode.allCases.randomElement(using: &random) ?? .text
        let isLong = Int.random(in: 0...9, using: &random) == 0
        var payload = (0..<Int.random(in: 0...(isLong ? 300 : 20), using: &random)).map { _ in
          UInt8.random(in: 0x20...0x7e, using: &random)
        }
        if opcode == .close, payload.count > 1 { payload.replaceSubrange(0..<2, with: [3, 0xe8]) }
        WebSocketFrameWriter.append(
          opcode, isFinal: opcode.isControl || Bool.random(using: &random),
          isCompressed: Int.random(in: 0...5, using: &random) == 0, payload: payload.span,
          mask: mode & 1 == 0 ? nil : UInt32.random(in: 0 ... .max, using: &random), to: &input)
      }
      if Bool.random(using: &random), input.count > 4 {
        input[Int.random(in: 4..<input.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let finding = WebSocketOracle.finding(in: input)
      #expect(finding == nil, "seed \(random.seed), round \(round): \(input)")
    }
  }
}
