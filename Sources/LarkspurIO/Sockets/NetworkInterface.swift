/// Checks names of network interfaces and parses zones.
public enum NetworkInterface {
  /// The longest name in bytes: `IFNAMSIZ` without the NUL.
  public static let nameBytesMax = 15

  /// Whether a network interface can have the name.
  public static func isName(_ text: String) -> Bool {
    1...nameBytesMax ~= text.utf8.count && !text.utf8.contains { $0 <= 0x20 || $0 == UInt8(ascii: "/") }
  }

  /// Returns the index of the interface that a zone stands for. A zone is the interface's name or its index (RFC 4007
  /// 11.2).
  ///
  /// - Returns: The index, or `nil` if no interface has the name or the index is 0. A number is not checked for
  ///   existence.
  public static func index(ofZone zone: String, kernel: any Kernel) -> UInt32? {
    // `UInt32` would accept a sign.
    if zone.utf8.first != UInt8(ascii: "+"), let number = UInt32(zone) { return number == 0 ? nil : number }
    guard isName(zone) else { return nil }
    let index = kernel.interfaceIndex(of: zone)
    return index > 0 ? UInt32(index) : nil
  }
}
