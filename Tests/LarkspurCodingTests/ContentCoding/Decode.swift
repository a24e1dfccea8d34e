import LarkspurCoding

/// Decodes `pieces` one after another into a buffer of `room` bytes, and records the output and the error.
struct Decoding {
  var output: [UInt8] = []
  var error: CodingError?
  /// Number of calls of `decode`.
  var steps = 0

  /// Returns whether two decodings agree: both succeed with equal output, or both fail. A failing step drops its
  /// output, and either of two layers may fail first, so that of two failed decodings one output has to be a prefix of
  /// the other.
  func agrees(with other: Decoding) -> Bool {
    guard error != nil, other.error != nil else { return error == other.error && output == other.output }
    return output.starts(with: other.output) || other.output.starts(with: output)
  }

  init(
    _ pieces: [ArraySlice<UInt8>], _ codings: [ContentCoding], room: Int = Decompressor.stepBytes,
    limits: CodingLimits = CodingLimits()
  ) {
    do throws(CodingError) {
      var decompressor = try Decompressor(codings, limits: limits)
      for piece in pieces {
        let piece = Array(piece)
        var consumed = 0
        repeat {
          steps += 1
        } while try decompressor.decode(
          piece.span, consumed: &consumed, appendingTo: &output, atMost: room) == .hasMore
      }
      try decompressor.finish()
    } catch {
      self.error = error
    }
  }
}

func single(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] { bytes.indices.map { bytes[$0...$0] } }

func bytes(hex: String) -> [UInt8] {
  let digits = hex.compactMap(\.hexDigitValue)
  return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
