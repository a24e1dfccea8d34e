import LarkspurIO

enum IPAddressText {
  /// - Returns: The 4 or 16 bytes of an IP address, or `nil` if the text is no IP address.
  static func bytes(of text: String) -> [UInt8]? {
    switch SocketAddress(literal: text, port: 0) {
    case .ipv4(let address, _)?: bytes(UInt64(address), count: 4)
    case .ipv6(let high, let low, _, _)?: bytes(high, count: 8) + bytes(low, count: 8)
    case .unix?, nil: nil
    }
  }

  private static func bytes(_ value: UInt64, count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
  }
}
