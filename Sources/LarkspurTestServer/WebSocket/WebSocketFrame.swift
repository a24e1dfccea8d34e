import LarkspurBytes
import LarkspurHTTP

extension TestServer {
  /// A WebSocket frame (RFC 6455, section 5.2): one that a client sent, or one to send, right or wrong.
  ///
  /// ```swift
  /// .sendFrame(.init(.text, "masked", mask: 0x0102_0304))       // a server must not mask
  /// .sendFrame(.init(.ping, [UInt8](repeating: 0, count: 126))) // a control frame has at most 125 bytes
  /// .sendFrame(.init(.binary, [1], lengthForm: .bits64))        // the length is not minimal
  /// .sendFrame(.init(3, []))                                    // a reserved opcode
  /// ```
  public struct WebSocketFrame: Hashable, Sendable {
    /// The type of a frame: four bits. The values 3 to 7 and 11 to 15 are reserved.
    public struct Opcode: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
      /// The four bits as a number.
      public var rawValue: UInt8

      /// Creates the opcode of a number.
      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      /// Creates the opcode of a number.
      public init(integerLiteral value: UInt8) {
        self.init(rawValue: value)
      }

      /// A further frame of a message.
      public static let continuation: Self = 0
      /// The first frame of a message of text, in UTF-8.
      public static let text: Self = 1
      /// The first frame of a message of bytes.
      public static let binary: Self = 2
      /// A Close: a status code and a reason, or nothing.
      public static let close: Self = 8
      /// A Ping, which the peer answers with a Pong.
      public static let ping: Self = 9
      /// A Pong, with the payload of the Ping.
      public static let pong: Self = 10
    }

    /// The way in which the length of a payload is encoded.
    public enum LengthForm: Hashable, Sendable {
      /// The shortest form, the only right one.
      case shortest
      /// The seven bits of the second byte; greater lengths lose their higher bits.
      case bits7
      /// Two more bytes; greater lengths lose their higher bits.
      case bits16
      /// Eight more bytes.
      case bits64
    }

    /// The type of the frame.
    public var opcode: Opcode
    /// Whether the frame is the last one of its message: FIN.
    public var isFinal: Bool
    /// RSV1 to RSV3 as a number of three bits: RSV1, which marks a compressed message, is 4.
    public var reservedBits: UInt8
    /// The masking key with its first byte as the most significant one, or `nil` if the payload is not masked.
    public var mask: UInt32?
    /// The length that the header announces.
    public var length: UInt64
    /// The encoding of the length. A received frame has the shortest form.
    public var lengthForm: LengthForm
    /// The payload without the mask. A received payload is recorded only as far as
    /// ``TestServer/Options/webSocketBytesKept`` permits; `length` is always right.
    public var payload: [UInt8]

    /// Creates a frame.
    ///
    /// - Parameters:
    ///   - opcode: The type of the frame.
    ///   - payload: The payload without the mask.
    ///   - isFinal: Whether the frame is the last one of its message.
    ///   - reservedBits: RSV1 to RSV3 as a number of three bits.
    ///   - mask: The masking key with its first byte as the most significant one, or `nil` for no mask.
    ///   - length: The length to announce, or `nil` for that of the payload.
    ///   - lengthForm: The encoding of the length.
    public init(
      _ opcode: Opcode, _ payload: [UInt8] = [], isFinal: Bool = true, reservedBits: UInt8 = 0, mask: UInt32? = nil,
      length: UInt64? = nil, lengthForm: LengthForm = .shortest
    ) {
      self.opcode = opcode
      self.payload = payload
      self.isFinal = isFinal
      self.reservedBits = reservedBits
      self.mask = mask
      self.length = length ?? UInt64(payload.count)
      self.lengthForm = lengthForm
    }

    /// Creates a frame with a payload of text in UTF-8.
    public init(
      _ opcode: Opcode, _ text: String, isFinal: Bool = true, reservedBits: UInt8 = 0, mask: UInt32? = nil
    ) {
      self.init(opcode, Array(text.utf8), isFinal: isFinal, reservedBits: reservedBits, mask: mask)
    }

    /// The frame as it is sent: its header, and its payload with the mask applied.
    public var bytes: [UInt8] {
      var output: [UInt8] = []
      output.reserveCapacity(WebSocketFrameWriter.headerBytesMax + payload.count)
      output.append((isFinal ? 0x80 : 0) | (reservedBits & 7) << 4 | opcode.rawValue & 0x0f)
      let maskBit: UInt8 = mask == nil ? 0 : 0x80
      switch resolvedForm {
      case .shortest, .bits7: output.append(maskBit | UInt8(truncatingIfNeeded: length) & 0x7f)
      case .bits16:
        output.append(maskBit | 126)
        Self.append(length, bytes: 2, to: &output)
      case .bits64:
        output.append(maskBit | 127)
        Self.append(length, bytes: 8, to: &output)
      }
      if let mask { Self.append(UInt64(mask), bytes: 4, to: &output) }
      let start = output.count
      output += payload
      if let mask { Masking.apply(mask, to: &output, in: start..<output.count) }
      return output
    }

    private var resolvedForm: LengthForm {
      guard lengthForm == .shortest else { return lengthForm }
      return length <= 125 ? .bits7 : length <= UInt64(UInt16.max) ? .bits16 : .bits64
    }

    private static func append(_ number: UInt64, bytes count: Int, to output: inout [UInt8]) {
      for index in (0..<count).reversed() { output.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index))) }
    }
  }
}
