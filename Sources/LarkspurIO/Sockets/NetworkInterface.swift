/// Reading what names a network interface.
public enum NetworkInterface {
  /// `IFNAMSIZ`, without its NUL.
  public static let nameBytesMax = 15

  /// Whether an interface may have the name.
  public static func isName(_ text: String) -> Bool {
    1...nameBytesMax ~= text.utf8.count && !text.utf8.contains { $0 <= 0x20 || $0 == UInt8(ascii: "/") }
  }

  /// The number of the interface that the zone of an address names, or is (RFC 4007 11.2). Nil: there is none.
  public static func index(ofZone zone: String, kernel: any Kernel) -> UInt32? {
    // UInt32 reads a sign, too.
    if zone.utf8.first != UInt8(ascii: "+"), let number = UInt32(zone) { return number == 0 ? nil : number }
    guard isName(zone) else { return nil }
    let index = kernel.interfaceIndex(of: zone)
    return index > 0 ? UInt32(index) : nil
  }
}
