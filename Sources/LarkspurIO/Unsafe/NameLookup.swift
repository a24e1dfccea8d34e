import Glibc

/// A blocking lookup of a host name by the system's rules (`/etc/hosts`, DNS, nsswitch).
public enum NameLookup {
  public enum Failure: Error, Hashable, Sendable {
    /// The name does not exist or has no address. The text is the resolver's message: "Name or service not known".
    case noSuchName(String)
    /// The lookup failed without a result. The text is the resolver's message: "Temporary failure in name resolution".
    case failed(String)
    /// The process or the machine lacks a resource that the lookup needs, for example descriptors.
    case unavailable(Errno)
  }

  /// Returns the stream addresses of `host`, in the order in which to try them (RFC 6724). Blocks the thread.
  public static func addresses(of host: String, port: UInt16) throws(Failure) -> [SocketAddress] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = SOCK_STREAM
    // Leaves out the addresses of a family of which this machine has no address.
    unsafe hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    errno = 0
    var error = unsafe getaddrinfo(host, nil, &hints, &list)
    if error == EAI_NONAME {
      // AI_ADDRCONFIG does not count loopback: on a machine without a network "localhost" needs a second try.
      unsafe hints.ai_flags = 0
      error = unsafe getaddrinfo(host, nil, &hints, &list)
    }
    guard error == 0 else {
      // Without `/etc/hosts` or a socket the resolver has not looked everywhere, even if it reports that there is no
      // such name.
      let cause = Errno.current
      if cause.isShortage { throw .unavailable(cause) }
      if error == EAI_MEMORY { throw .unavailable(.noMemory) }
      if error == EAI_SYSTEM { throw .failed("\(cause)") }
      // Safe: gai_strerror returns a constant string.
      let message = unsafe String(cString: gai_strerror(error))
      switch error {
      case EAI_NONAME, EAI_NODATA, EAI_ADDRFAMILY:
        throw .noSuchName(message)
      default: throw .failed(message)
      }
    }
    defer { unsafe freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = unsafe list
    // Safe: the list is valid until it is freed, and ends with `nil`.
    while let entry = unsafe next {
      if let raw = unsafe entry.pointee.ai_addr, let address = unsafe SocketAddress(raw)?.with(port: port),
        !addresses.contains(address)
      {
        addresses.append(address)
      }
      unsafe next = entry.pointee.ai_next
    }
    return addresses
  }
}
