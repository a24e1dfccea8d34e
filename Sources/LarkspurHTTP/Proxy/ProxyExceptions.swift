import LarkspurBytes

/// The hosts that are reached without a proxy: curl's `--noproxy` and `NO_PROXY`.
///
/// The list has these entries, with commas or white space in between:
///
/// - `example.org` or `.example.org`: the host and every host below it, but not `bad-example.org`;
/// - `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`: the address in any spelling, in every zone;
/// - `fe80::1%eth0`, `[fe80::1%eth0]` or `[fe80::1%25eth0]`: the address in that zone;
/// - `192.0.2.0/24`, `2001:db8::/32`: all addresses of the network, in every zone; also `169.254/16` and `127.*`, as
///   macOS writes them;
/// - `*`: every host.
///
/// A `:port` after a name, an IPv4 address or an address in brackets limits the entry to that port. The letter case of
/// a name and a dot at its end do not matter. Names are not looked up: an address entry does not match a name that
/// has that address. Malformed entries are ignored.
public struct ProxyExceptions: Hashable, Sendable {
  private enum Entry: Hashable {
    case all
    case name([UInt8], port: UInt16?)
    case address(IPAddress, zone: String?, port: UInt16?)
    case network(IPAddress, bits: Int)
  }

  private let entries: [Entry]

  /// Reads a list, whose malformed entries are left out. An empty list, the default, has no hosts.
  public init(_ list: String = "") {
    entries = list.utf8.split { $0 == UInt8(ascii: ",") || ASCII.isWhitespace($0) }.compactMap {
      Self.entry(Array($0)[...])
    }
  }

  /// Creates the hosts of a list without malformed entries, or returns `nil`. `*.example.org` stands for `example.org`.
  public init?(domains: [String]) {
    var entries: [Entry] = []
    for domain in domains {
      let word = Array(domain.utf8)[...]
      guard !word.contains(where: { $0 == UInt8(ascii: ",") || ASCII.isWhitespace($0) }),
        let entry = Self.entry(word.starts(with: "*.".utf8) ? word.dropFirst() : word)
      else { return nil }
      entries.append(entry)
    }
    self.entries = entries
  }

  /// Returns whether `host`, with or without brackets, is reached without a proxy.
  public func contains(host: String, port: UInt16) -> Bool {
    let bytes = Self.unbracketed(Array(host.utf8)[...])
    let known = HostAddress(text(bytes))
    let address = known?.address
    let name = Self.name(bytes)
    return entries.contains { entry in
      switch entry {
      case .all: true
      case .address(let excepted, let zone, let number):
        excepted == address && (zone == nil || zone == known?.zone) && number ?? port == port
      case .network(let network, let bits): address?.hasPrefix(of: network, bits: bits) ?? false
      case .name(let excepted, let number):
        address == nil && number ?? port == port && Self.isName(name, atOrBelow: excepted)
      }
    }
  }

  private static func entry(_ word: ArraySlice<UInt8>) -> Entry? {
    if word.elementsEqual("*".utf8) { return .all }
    if let slash = word.firstIndex(of: UInt8(ascii: "/")) {
      let digits = word[(slash + 1)...]
      guard let network = IPAddress(text(unbracketed(word[..<slash]))) ?? filledUp(word[..<slash]),
        digits.allSatisfy(ASCII.isDigit),
        let bits = Int(text(digits)), bits <= network.bitCount
      else { return nil }
      return .network(network, bits: bits)
    }
    if word.suffix(2).elementsEqual(".*".utf8), let network = filledUp(word.dropLast(2)) {
      return .network(network, bits: 8 * word.count { $0 == UInt8(ascii: ".") })
    }
    if let known = HostAddress(text(word)) { return .address(known.address, zone: known.zone, port: nil) }
    guard let (host, digits) = splitPort(word), digits.allSatisfy(ASCII.isDigit) else { return nil }
    let port = UInt16(text(digits))
    guard port != nil || digits.isEmpty else { return nil }
    if let known = HostAddress(text(host)) { return .address(known.address, zone: known.zone, port: port) }
    let name = name(host.first == UInt8(ascii: ".") ? host.dropFirst() : host)
    return name.isEmpty || name.contains(UInt8(ascii: "[")) ? nil : .name(name, port: port)
  }

  /// Reads an IPv4 address whose last numbers are left out, and takes these as zero.
  private static func filledUp(_ bytes: ArraySlice<UInt8>) -> IPAddress? {
    let dots = bytes.count { $0 == UInt8(ascii: ".") }
    return dots < 3 ? IPAddress(text(bytes) + String(repeating: ".0", count: 3 - dots)) : nil
  }

  private static func unbracketed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    bytes.first == UInt8(ascii: "[") && bytes.last == UInt8(ascii: "]") ? bytes.dropFirst().dropLast() : bytes
  }

  /// Returns the name in lower case, without a dot at its end.
  private static func name(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    let name = bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes
    return name.map(\.asciiLowercased)
  }

  private static func isName(_ name: [UInt8], atOrBelow excepted: [UInt8]) -> Bool {
    guard name.count > excepted.count else { return name == excepted }
    return name.suffix(excepted.count).elementsEqual(excepted)
      && name[name.count - excepted.count - 1] == UInt8(ascii: ".")
  }
}

private func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
