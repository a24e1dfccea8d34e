import LarkspurCoding

/// Checks the decompressor on any bytes.
///
/// An input begins with four bytes. The first is a mode (bits 0 to 2: the number of layers; bits 3 to 7: which of them
/// are deflate). The second is the room for output in units of 8 bytes, where 0 is one byte; its bit 7 selects tight
/// limits. The others are the sizes of the pieces in which the rest arrives, in turn. The rest is the body.
///
/// Seven layers mean something else: messages of a WebSocket connection (`MessageDeflateOracle`).
package enum ContentCodingOracle {
  private struct Reading {
    var output: [UInt8] = []
    var error: CodingError?
  }

  /// - Returns: The error of the decompressor, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    guard input.count >= 4 else { return nil }
    if input[0] & 7 == 7 { return MessageDeflateOracle.finding(in: input) }
    let codings = (0..<Int(input[0] & 7)).map { input[0] & 8 << UInt8($0) != 0 ? ContentCoding.deflate : .gzip }
    let room = max(Int(input[1] & 127) * 8, 1)
    var limits = CodingLimits()
    // Several layers of bombs would take a minute. Smaller limits show as well whether the decompressor keeps them.
    limits.bytesOutAlways = input[1] & 128 != 0 ? 500 : 200_000
    if input[1] & 128 != 0 { limits.expansionMax = 3 }
    let bytes = Array(input[4...])
    do {
      let whole = try read(Cuts.whole(bytes), codings, room: 65536, limits)
      for pieces in [Cuts.cycling(bytes, sizes: input[2..<4]), Cuts.single(bytes)] {
        let cut = try read(pieces, codings, room: room, limits)
        guard agree(whole, cut) else {
          return "whole: \(whole.output.count) \(String(describing: whole.error)), "
            + "cut: \(cut.output.count) \(String(describing: cut.error))"
        }
      }
      return whole.error == nil ? roundTrip(whole.output, codings) : nil
    } catch {
      return error.what
    }
  }

  private static func agree(_ one: Reading, _ other: Reading) -> Bool {
    // The moment at which a bomb is noticed depends on the size of the pieces. The output before that moment does not.
    let isBomb = one.error == .peerSentBomb || other.error == .peerSentBomb
    guard isBomb || one.error != nil && other.error != nil else {
      return one.error == other.error && one.output == other.output
    }
    return one.output.starts(with: other.output) || other.output.starts(with: one.output)
  }

  /// Encodes the decoded body with the same codings, and compares the result of decoding it again.
  private static func roundTrip(_ output: [UInt8], _ codings: [ContentCoding]) -> String? {
    do {
      let body = try codings.reduce(output) { try compressed($0, as: $1 == .gzip ? .gzip : .zlib) }
      return try decompressed(body, codings) == output ? nil : "not the same when it was coded again"
    } catch {
      return "not decoded again: \(error)"
    }
  }

  private struct Breach: Error {
    var what: String
  }

  private static func read(
    _ pieces: [ArraySlice<UInt8>], _ codings: [ContentCoding], room: Int, _ limits: CodingLimits
  ) throws(Breach) -> Reading {
    var reading = Reading()
    do throws(CodingError) {
      var decompressor = try Decompressor(codings, limits: limits)
      for piece in pieces {
        let piece = Array(piece)
        var consumed = 0
        var progress = Decompressor.Progress.hasMore
        while progress == .hasMore {
          let before = (consumed: consumed, output: reading.output.count)
          progress = try decompressor.decode(
            piece.span, consumed: &consumed, appendingTo: &reading.output, atMost: room)
          guard before.consumed...piece.count ~= consumed, reading.output.count - before.output <= room else {
            throw CodingError.internalInconsistency(zlib: 1)
          }
          guard progress == .hasMore || consumed == piece.count else { throw .internalInconsistency(zlib: 2) }
          let most = max(limits.bytesOutAlways, decompressor.bytesIn * limits.expansionMax)
          guard codings.isEmpty || UInt64(reading.output.count) <= most else { throw .internalInconsistency(zlib: 3) }
        }
      }
      try decompressor.finish()
    } catch {
      if case .internalInconsistency(let number) = error { throw Breach(what: "inconsistent: \(number)") }
      reading.error = error
    }
    return reading
  }
}
