import LarkspurCoding

/// Decodes `pieces` one after another with a buffer of `room` bytes, and says what came out and how it ended.
struct Decoding {
  var output: [UInt8] = []
  var error: CodingError?
  /// How often a step was made.
  var steps = 0

  /// Whether both have read the same. A step that fails keeps nothing of what it has brought out, and of two layers
  /// either may be the first to fail: only where all is well it is equal to the byte.
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
