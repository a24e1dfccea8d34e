import Glibc

extension SocketAddress {
  /// The family's constant `AF_...`.
  var familyNumber: Int32 {
    switch family {
    case .ipv4: AF_INET
    case .ipv6: AF_INET6
    case .unix: AF_UNIX
    }
  }

  /// Calls `body` with the address as the kernel's structure.
  ///
  /// - Throws: `nameTooLong` or `invalidArgument` for a path that the structure cannot hold.
  @unsafe
  func withSockAddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) throws(Errno) -> R {
    switch self {
    case .ipv4(let address, let port):
      var raw = sockaddr_in()
      raw.sin_family = sa_family_t(AF_INET)
      raw.sin_port = port.bigEndian
      raw.sin_addr.s_addr = address.bigEndian
      return unsafe Self.lend(raw, body)
    case .ipv6(let high, let low, let scope, let port):
      var raw = sockaddr_in6()
      raw.sin6_family = sa_family_t(AF_INET6)
      raw.sin6_port = port.bigEndian
      raw.sin6_scope_id = scope
      // Safe: in6_addr is sixteen bytes in network order.
      unsafe withUnsafeMutableBytes(of: &raw.sin6_addr) { bytes in
        unsafe bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
        unsafe bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
      }
      return unsafe Self.lend(raw, body)
    case .unix(let path):
      let isAbstract = path.utf8.first == 0
      let bytes = Array(path.utf8)
      guard bytes.count - (isAbstract ? 1 : 0) <= Self.unixPathBytesMax else { throw .nameTooLong }
      // With an empty path `bind` would choose a name, and a NUL would cut a path short. In an abstract name a NUL is a
      // byte like any other.
      guard !bytes.isEmpty, isAbstract || !bytes.contains(0) else { throw .invalidArgument }
      var raw = sockaddr_un()
      raw.sun_family = sa_family_t(AF_UNIX)
      // Safe: the check above ensures that the bytes fit. The bytes behind them stay zero.
      unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: bytes) }
      // A path ends with a NUL, which the length includes. The length alone ends an abstract name.
      let length = MemoryLayout<sa_family_t>.size + bytes.count + (isAbstract ? 0 : 1)
      return unsafe Self.lend(raw, length: length, body)
    }
  }

  @unsafe
  private static func lend<T, R>(
    _ raw: T, length: Int = MemoryLayout<T>.size, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
  ) -> R {
    // Safe: every sockaddr_xx begins like sockaddr, and `length` is at most its size.
    unsafe withUnsafePointer(to: raw) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(length))
      }
    }
  }

  /// Creates an address from the kernel's structure, or returns `nil` for a family other than IPv4 and IPv6.
  @unsafe
  init?(_ address: UnsafePointer<sockaddr>) {
    switch unsafe Int32(address.pointee.sa_family) {
    case AF_INET:
      // Safe: the family determines the structure.
      self = unsafe address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        unsafe .ipv4(UInt32(bigEndian: $0.pointee.sin_addr.s_addr), port: UInt16(bigEndian: $0.pointee.sin_port))
      }
    case AF_INET6:
      self = unsafe address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { pointer in
        var raw = unsafe pointer.pointee
        let (high, low) = Self.halves(&raw.sin6_addr)
        return .ipv6(high: high, low: low, scope: raw.sin6_scope_id, port: UInt16(bigEndian: raw.sin6_port))
      }
    default:
      return nil
    }
  }

  /// Parses an IP address: `192.0.2.1` or `2001:db8::1`, without brackets.
  ///
  /// - Returns: The address, or `nil` if the text is not an address.
  public init?(literal text: String, port: UInt16) {
    // A NUL would end the text early for inet_pton.
    guard !text.utf8.contains(0) else { return nil }
    var v4 = in_addr()
    var v6 = in6_addr()
    // Safe: inet_pton reads a NUL-terminated string and writes exactly one address of its family.
    if unsafe inet_pton(AF_INET, text, &v4) == 1 {
      self = .ipv4(UInt32(bigEndian: v4.s_addr), port: port)
    } else if unsafe inet_pton(AF_INET6, text, &v6) == 1 {
      let (high, low) = Self.halves(&v6)
      self = .ipv6(high: high, low: low, scope: 0, port: port)
    } else {
      return nil
    }
  }

  private static func halves(_ address: inout in6_addr) -> (high: UInt64, low: UInt64) {
    // Safe: in6_addr is sixteen bytes in network order. Its alignment is four bytes, so the loads are unaligned.
    unsafe withUnsafeBytes(of: &address) { bytes in
      let (high, low) = unsafe (
        bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
      )
      return (UInt64(bigEndian: high), UInt64(bigEndian: low))
    }
  }
}
