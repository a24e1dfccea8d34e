import LarkspurBytes

/// Writes frames (RFC 6455 5.2).
package enum WebSocketFrameWriter {
  /// Maximum size of a header in bytes: two bytes, a length of eight, and a mask of four.
  package static let headerBytesMax = 14

  /// Appends a header to `output`.
  package static func append(_ header: WebSocketFrameHeader, to output: inout [UInt8]) {
    output.append((header.isFinal ? 0x80 : 0) | (header.isCompressed ? 0x40 : 0) | header.opcode.rawValue)
    let maskBit: UInt8 = header.mask == nil ? 0 : 0x80
    let length = UInt64(max(header.length, 0))
    switch length {
    case 0...125: output.append(maskBit | UInt8(truncatingIfNeeded: length))
    case 126...UInt64(UInt16.max):
      output.append(maskBit | 126)
      append(length, bytes: 2, to: &output)
    default:
      output.append(maskBit | 127)
      append(length, bytes: 8, to: &output)
    }
    if let mask = header.mask { append(UInt64(mask), bytes: 4, to: &output) }
  }

  /// Appends a whole frame to `output`.
  ///
  /// - Parameter mask: The masking key, which is random and new for each frame of a client (RFC 6455 5.3), or `nil` for
  ///   a frame of a server.
  package static func append(
    _ opcode: WebSocketOpcode, isFinal: Bool = true, isCompressed: Bool = false, payload: Span<UInt8>, mask: UInt32?,
    to output: inout [UInt8]
  ) {
    let header = WebSocketFrameHeader(
      opcode, isFinal: isFinal, isCompressed: isCompressed, mask: mask, length: payload.count)
    // Performance: an output without memory gets all of it at once. Others keep growing by factors.
    if output.capacity == 0 { output.reserveCapacity(headerBytesMax + payload.count) }
    append(header, to: &output)
    let start = output.count
    output.append(copying: payload)
    if let mask { Masking.apply(mask, to: &output, in: start..<output.count) }
  }

  /// Appends the least significant bytes of a number, the most significant of them first.
  private static func append(_ number: UInt64, bytes count: Int, to output: inout [UInt8]) {
    var shift = UInt64(8 * count)
    while shift > 0 {
      shift -= 8
      output.append(UInt8(truncatingIfNeeded: number &>> shift))
    }
  }
}
