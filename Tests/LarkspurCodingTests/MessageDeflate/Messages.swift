import LarkspurCoding
import TestKit

/// The result of inflating one message.
struct InflatedMessage {
  var output: [UInt8] = []
  var error: CodingError?

  /// Inflates the fragments of one message into steps of `room` bytes.
  init(
    _ fragments: [ArraySlice<UInt8>], _ inflater: inout MessageInflater, room: Int = MessageInflater.stepBytes,
    atMost messageBytesMax: Int = .max
  ) {
    var progress = MessageInflater.Progress.needsInput
    do throws(CodingError) {
      for (index, fragment) in fragments.enumerated() {
        let fragment = Array(fragment)
        var consumed = 0
        repeat {
          progress = try inflater.inflate(
            fragment.span, consumed: &consumed, isLast: index == fragments.count - 1, atMost: messageBytesMax,
            appendingTo: &output, room: room)
        } while progress == .hasMore
      }
      if progress != .messageEnded { error = .internalInconsistency(zlib: 99) }
    } catch {
      self.error = error
    }
  }

  /// Inflates one message with an inflater of its own.
  init(
    _ payload: [UInt8], windowBits: Int = 15, room: Int = MessageInflater.stepBytes, atMost messageBytesMax: Int = .max,
    limits: CodingLimits = CodingLimits()
  ) throws {
    var inflater = try MessageInflater(windowBits: windowBits, takesOver: true, limits: limits)
    self.init([payload[...]], &inflater, room: room, atMost: messageBytesMax)
  }
}

/// Messages for the tests, all of them functions of the generator's seed.
enum Messages {
  enum Kind: CaseIterable { case text, random, zeros }

  static func make(_ kind: Kind, _ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
    switch kind {
    case .zeros: return [UInt8](repeating: 0, count: count)
    case .random: return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    case .text:
      var text: [UInt8] = []
      while text.count < count {
        text += #"{"id":\#(Int.random(in: 0..<100_000, using: &generator)),"name":"lark"},"#.utf8
        // Repetitions from everywhere in the text, as far back as a window of any size reaches.
        let start = Int.random(in: 0..<text.count, using: &generator)
        text += Array(text[start..<min(start + 12, text.count)])
      }
      return Array(text.prefix(count))
    }
  }
}
