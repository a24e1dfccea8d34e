/// A message of rtnetlink(7), the kernel's interface to links, addresses and routes.
///
/// ```
///   length (4)  type (2)  flags (2)  sequence (4)  port (4)  |  a structure  |  attributes, each padded to 4
/// ```
///
/// Numbers are in the machine's byte order. Parsing never reads beyond the bytes that were received: a length that does
/// not fit ends it.
public struct NetlinkMessage: Hashable, Sendable {
  public var type: UInt16
  public var flags: UInt16
  public var sequence: UInt32
  public var body: ArraySlice<UInt8>

  public static let headerBytes = 16

  /// Message types, as in linux/netlink.h and linux/rtnetlink.h.
  public enum Kind {
    public static let error: UInt16 = 2
    public static let done: UInt16 = 3
    public static let newLink: UInt16 = 16
    public static let deletedLink: UInt16 = 17
    public static let getLink: UInt16 = 18
    public static let newAddress: UInt16 = 20
    public static let deletedAddress: UInt16 = 21
    public static let getAddress: UInt16 = 22
    public static let newRoute: UInt16 = 24
    public static let deletedRoute: UInt16 = 25
    public static let getRoute: UInt16 = 26
  }

  public enum Flag {
    public static let request: UInt16 = 1
    /// The configuration changed while the kernel listed it, so the list may be inconsistent.
    public static let interrupted: UInt16 = 0x10
    /// In a request: the kernel lists all entries.
    public static let dump: UInt16 = 0x300
  }

  /// Parses the messages of one datagram.
  public static func messages(in bytes: [UInt8]) -> [NetlinkMessage] {
    var rest = bytes[...]
    var messages: [NetlinkMessage] = []
    while let length = rest.number(at: 0, as: UInt32.self), let type = rest.number(at: 4, as: UInt16.self),
      let flags = rest.number(at: 6, as: UInt16.self), let sequence = rest.number(at: 8, as: UInt32.self),
      Int(length) >= headerBytes, Int(length) <= rest.count
    {
      let body = rest.prefix(Int(length)).dropFirst(headerBytes)
      messages.append(NetlinkMessage(type: type, flags: flags, sequence: sequence, body: body))
      rest = rest.dropFirst(Int(length).padded)
    }
    return messages
  }

  /// Returns a request as bytes to send. The attributes follow the structure.
  public static func request(
    _ type: UInt16, flags: UInt16 = Flag.request, sequence: UInt32, _ structure: [UInt8],
    attributes: [(type: UInt16, value: [UInt8])] = []
  ) -> [UInt8] {
    var body = structure
    for (type, value) in attributes {
      body += UInt16(truncatingIfNeeded: 4 + value.count).bytes + type.bytes + value
      body += repeatElement(0, count: value.count.padded - value.count)
    }
    let length = UInt32(truncatingIfNeeded: headerBytes + body.count)
    return length.bytes + type.bytes + flags.bytes + sequence.bytes + UInt32(0).bytes + body
  }

  /// Returns the value of an attribute.
  ///
  /// - Parameter structureBytes: The size of the structure in front of the attributes.
  func attribute(_ type: UInt16, behind structureBytes: Int) -> ArraySlice<UInt8>? {
    Self.attribute(type, in: body.dropFirst(structureBytes))
  }

  static func attribute(_ wanted: UInt16, in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var rest = bytes
    while let length = rest.number(at: 0, as: UInt16.self), let type = rest.number(at: 2, as: UInt16.self),
      length >= 4, Int(length) <= rest.count
    {
      // The two highest bits state how to parse the value (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
      if type & 0x3fff == wanted { return rest.prefix(Int(length)).dropFirst(4) }
      rest = rest.dropFirst(Int(length).padded)
    }
    return nil
  }
}

extension Int {
  /// The number rounded up to a multiple of four, the alignment of everything in netlink.
  var padded: Int { (self + 3) & ~3 }
}

extension FixedWidthInteger {
  /// The number's bytes in the machine's byte order.
  var bytes: [UInt8] {
    let shifts = stride(from: 0, to: Self.bitWidth, by: 8)
    let littleEndian = shifts.map { UInt8(truncatingIfNeeded: self >> Self($0)) }
    return self.littleEndian == self ? littleEndian : littleEndian.reversed()
  }
}

extension ArraySlice<UInt8> {
  /// Returns the number that begins `offset` bytes behind the first byte, in the machine's byte order.
  func number<Number: FixedWidthInteger & UnsignedInteger>(at offset: Int, as type: Number.Type) -> Number? {
    let size = Number.bitWidth / 8
    guard offset >= 0, offset <= count - size else { return nil }
    let start = startIndex + offset
    let value = self[start..<start + size].reversed().reduce(0 as Number) { $0 << 8 | Number($1) }
    return Number(littleEndian: value)
  }

  func byte(at offset: Int) -> UInt8? { number(at: offset, as: UInt8.self) }
}
