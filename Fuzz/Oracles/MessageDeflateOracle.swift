import LarkspurCoding

/// Checks the inflater of WebSocket messages on any bytes, and the compressor on what comes out.
///
/// An input is one of ``ContentCodingOracle`` whose mode names seven layers. Bits 3 to 5 of the mode are the window's
/// bits less 8, and bit 6 says that no context is taken over. The second byte is the room for output and the limits,
/// the next two are the sizes of fragments. The rest is a sequence of messages, each after a byte with its length.
enum MessageDeflateOracle {
  private static let messageBytesMax = 100_000

  private struct Reading {
    /// The complete messages, and then what there is of one that failed.
    var messages: [[UInt8]] = []
    var error: CodingError?
  }

  private struct Breach: Error {
    var what: String
  }

  private struct Parameters {
    var windowBits: Int
    var takesOver: Bool
    var limits = CodingLimits()
  }

  static func finding(in input: [UInt8]) -> String? {
    var parameters = Parameters(windowBits: 8 + Int(input[0] >> 3 & 7), takesOver: input[0] & 64 == 0)
    let room = max(Int(input[1] & 127) * 8, 1)
    parameters.limits.messageBytesOutAlways = input[1] & 128 != 0 ? 500 : 200_000
    if input[1] & 128 != 0 { parameters.limits.expansionMax = 3 }
    let payloads = payloads(in: input[4...])
    do {
      let whole = try read(payloads.map { [$0[...]] }, parameters, room: 65536)
      for fragments in [payloads.map { Cuts.cycling($0, sizes: input[2..<4]) }, payloads.map(Cuts.single)] {
        let cut = try read(fragments, parameters, room: room)
        guard agree(whole, cut, parameters) else {
          return "whole: \(whole.messages.map(\.count)) \(String(describing: whole.error)), "
            + "cut: \(cut.messages.map(\.count)) \(String(describing: cut.error))"
        }
      }
      return try roundTrip(whole.messages, parameters)
    } catch {
      return error.what
    }
  }

  private static func payloads(in bytes: ArraySlice<UInt8>) -> [[UInt8]] {
    var payloads: [[UInt8]] = []
    var rest = bytes
    while let length = rest.popFirst() {
      payloads.append(Array(rest.prefix(Int(length))))
      rest = rest.dropFirst(Int(length))
    }
    return payloads
  }

  private static func agree(_ one: Reading, _ other: Reading, _ parameters: Parameters) -> Bool {
    // The moment at which a message is too long depends on the size of the steps, and so does the answer to a reference
    // beyond a window that is not the greatest. The output before that moment does not.
    let isLimit = [one.error, other.error].contains { $0 == .peerSentBomb || $0 == .peerSentMessageTooLong }
    let isLoose = isLimit || parameters.windowBits < 15 && (one.error ?? other.error) != nil
    guard isLoose || one.error != nil else { return other.error == nil && one.messages == other.messages }
    guard isLoose || one.error == other.error else { return false }
    let (first, second) = (Array(one.messages.joined()), Array(other.messages.joined()))
    return first.starts(with: second) || second.starts(with: first)
  }

  private static func read(
    _ messages: [[ArraySlice<UInt8>]], _ parameters: Parameters, room: Int
  ) throws(Breach) -> Reading {
    var reading = Reading()
    do throws(CodingError) {
      var inflater = try MessageInflater(
        windowBits: parameters.windowBits, takesOver: parameters.takesOver, limits: parameters.limits)
      for fragments in messages {
        reading.messages.append([])
        // A message of no fragment is one of an empty fragment.
        let fragments = fragments.isEmpty ? [[]] : fragments
        for (index, fragment) in fragments.enumerated() {
          let isLast = index == fragments.count - 1
          try read(Array(fragment), isLast, &inflater, room, &reading.messages[reading.messages.count - 1])
        }
      }
    } catch {
      if case .internalInconsistency(let number) = error { throw Breach(what: "inconsistent: \(number)") }
      reading.error = error
    }
    return reading
  }

  private static func read(
    _ fragment: [UInt8], _ isLast: Bool, _ inflater: inout MessageInflater, _ room: Int, _ output: inout [UInt8]
  ) throws(CodingError) {
    var consumed = 0
    var progress = MessageInflater.Progress.hasMore
    while progress == .hasMore {
      let before = (consumed: consumed, output: output.count)
      progress = try inflater.inflate(
        fragment.span, consumed: &consumed, isLast: isLast, atMost: messageBytesMax, appendingTo: &output, room: room)
      guard before.consumed...fragment.count ~= consumed, output.count - before.output <= room else {
        throw .internalInconsistency(zlib: 1)
      }
      let isUsedUp = consumed == fragment.count && (progress == .messageEnded) == isLast
      guard progress == .hasMore || isUsedUp else { throw .internalInconsistency(zlib: 2) }
      guard output.count <= messageBytesMax else { throw .internalInconsistency(zlib: 3) }
    }
  }

  /// Compresses the messages, and compares the result of inflating them. Room for one byte refuses every reference
  /// beyond the window.
  private static func roundTrip(_ messages: [[UInt8]], _ parameters: Parameters) throws(Breach) -> String? {
    var payloads: [[UInt8]] = []
    do throws(CodingError) {
      var deflater = try MessageDeflater(windowBits: parameters.windowBits, takesOver: parameters.takesOver)
      for message in messages {
        var payload: [UInt8] = []
        try deflater.deflate(message.span, into: &payload)
        payloads.append(payload)
      }
    } catch {
      return "not compressed: \(error)"
    }
    var parameters = parameters
    parameters.limits = CodingLimits()
    let again = try read(payloads.map { [$0[...]] }, parameters, room: 1)
    return again.error == nil && again.messages == messages ? nil : "not the same when it was compressed again"
  }
}
