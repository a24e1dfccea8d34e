import LarkspurHTTP
import LarkspurIO

/// Other places for hosts than those of their names: addresses, another host, or a Unix socket. curl calls them
/// `--resolve`, `--connect-to` and `--unix-socket`.
///
/// Only connections change: TLS, the `Host` field, cookies and the cache keep the URL's host and port.
///
/// ```swift
/// var overrides = HostOverrides()
/// overrides.set("docker.example", to: .socket(path: "/run/docker.sock"))
/// overrides.set("example.org", port: 443, to: .addresses(["192.0.2.1", "2001:db8::1"]))
/// overrides.set("*", to: .host("staging.example", port: 8443))
/// ```
public struct HostOverrides: Hashable, Sendable, Codable {
  /// The place to connect to.
  public enum Place: Hashable, Sendable, Codable {
    /// IP addresses, which are tried like those of a name. An IPv6 address may have a zone, `fe80::1%eth0`. The
    /// addresses of a proxy can be set, too. A proxy that looks up names ignores those of other hosts.
    case addresses([String])
    /// Another host, a name or an IP address without brackets, or `*` for the URL's; and its port, where `nil` keeps the
    /// URL's. A proxy opens a tunnel to this host, also for `http`.
    case host(String, port: UInt16? = nil)
    /// The path of a Unix-domain socket, at most 107 bytes, or a name in Linux's abstract namespace after a NUL. No
    /// proxy is used.
    case socket(path: String)
  }

  /// The places by `host:port`, or `host:*` for each port.
  private var places: [String: Place] = [:]

  /// Creates overrides that change nothing.
  public init() {}

  private struct Entry: Codable {
    var key: String
    var place: Place
  }

  public init(from decoder: any Decoder) throws {
    places = Dictionary(try [Entry](from: decoder).map { ($0.key, $0.place) }) { $1 }
  }

  /// Encodes the overrides as a list in the order of their hosts, so that equal overrides have an equal form.
  public func encode(to encoder: any Encoder) throws {
    try places.sorted { $0.key < $1.key }.map { Entry(key: $0.key, place: $0.value) }.encode(to: encoder)
  }

  /// Whether there is no override.
  public var isEmpty: Bool { places.isEmpty }

  /// Sets the place of `host`: a name, an IP address, or `*` for all hosts. An override for the port takes precedence
  /// over one for all ports, and both over those for all hosts.
  ///
  /// A place that makes no sense, such as an empty list, fails the requests to the host, and no others.
  public mutating func set(_ host: String, port: UInt16? = nil, to place: Place) {
    places[Self.key(host, port)] = place
  }

  /// Replaces the paths of sockets, so that a process with another current directory finds them.
  public mutating func makeSocketPathsAbsolute(_ absolute: (String) -> String) {
    for case (let key, .socket(let path)) in places where path.utf8.first ?? 0 != 0 {
      places[key] = .socket(path: absolute(path))
    }
  }

  /// Returns the place of a host, or `nil` if there is no override.
  fileprivate func place(of host: String, port: UInt16) -> Place? {
    guard !places.isEmpty else { return nil }
    return places[Self.key(host, port)] ?? places[Self.key(host, nil)] ?? places[Self.key("*", port)]
      ?? places[Self.key("*", nil)]
  }

  private static func key(_ host: String, _ port: UInt16?) -> String {
    var host = HostName.normal(host)
    if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
    if host.utf8.first == UInt8(ascii: "["), host.utf8.last == UInt8(ascii: "]") {
      host = String(host.dropFirst().dropLast())
    }
    return "\(host):\(port.map { "\($0)" } ?? "*")"
  }

  /// Returns the addresses of a host, or `nil` if the overrides set no addresses for it.
  func addresses(of host: String, port: UInt16, kernel: any Kernel) throws(TransportError) -> [SocketAddress]? {
    guard case .addresses(let texts)? = place(of: host, port: port) else { return nil }
    guard !texts.isEmpty else { throw Self.invalid("\(host) has no address") }
    var addresses: [SocketAddress] = []
    for text in texts {
      let address = try? SocketAddress(literal: text, port: port, kernel: kernel)
      guard let address else { throw Self.invalid("\(text.debugDescription) is no IP address of an interface") }
      addresses.append(address)
    }
    return addresses
  }

  fileprivate static func invalid(_ reason: String) -> TransportError { .optionInvalid("hostOverrides", reason) }
}

extension Route {
  /// Sets the place to connect to, if the overrides replace the host's addresses.
  ///
  /// - Throws: `optionInvalid` for a place that makes no sense.
  public mutating func apply(_ overrides: HostOverrides) throws(TransportError) {
    switch overrides.place(of: host, port: port) {
    case .addresses, nil: break
    case .host(let other, let otherPort)?:
      guard !other.isEmpty, otherPort != 0 else {
        throw HostOverrides.invalid("\(host) is overridden by a host without a name, or by port 0")
      }
      let own = Place(host: host, port: port)
      let place = Place(host: other == "*" ? host : other, port: otherPort ?? port)
      self.place = place == own ? nil : place
    case .socket(let path)?:
      let bytes = path.utf8
      guard 1...SocketAddress.unixPathBytesMax + (bytes.first == 0 ? 1 : 0) ~= bytes.count,
        !bytes.dropFirst().contains(0)
      else {
        throw HostOverrides.invalid(
          "the socket of \(host) has \(bytes.count) bytes in its path, and may have \(SocketAddress.unixPathBytesMax), without a NUL"
        )
      }
      socketPath = path
    }
  }
}
