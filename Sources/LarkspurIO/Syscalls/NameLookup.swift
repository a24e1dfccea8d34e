@_implementationOnly import CLarkspurLinux

/// One blocking look-up of a host name, by the system's own rules (`/etc/hosts`, DNS, nsswitch).
public enum NameLookup {
  public enum Failure: Error, Hashable, Sendable {
    /// The name does not exist or has no address, in the resolver's own words: "Name or service not known".
    case noSuchName(String)
    /// The resolver could not tell, in its own words: "Temporary failure in name resolution".
    case failed(String)
    /// The machine or this process is out of something that the look-up needs, descriptors for example.
    case unavailable(Errno)
  }

  /// The stream addresses of `host`, in the order in which they are to be tried (RFC 6724). Blocks the thread.
  public static func addresses(of host: String, port: UInt16) throws(Failure) -> [SocketAddress] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    // Addresses of a family that this machine has no address of are not offered.
    unsafe hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    larkspur_clear_errno()
    var error = unsafe getaddrinfo(host, nil, &hints, &list)
    if error == EAI_NONAME {
      // AI_ADDRCONFIG does not count loopback: on a machine without a network "localhost" needs a second try.
      unsafe hints.ai_flags = 0
      error = unsafe getaddrinfo(host, nil, &hints, &list)
    }
    guard error == 0 else {
      // Whoever cannot open `/etc/hosts` or a socket has not looked everywhere, whatever the resolver makes of it.
      let cause = Errno.current
      if cause.isShortage { throw .unavailable(cause) }
      if error == EAI_MEMORY { throw .unavailable(.noMemory) }
      if error == EAI_SYSTEM { throw .failed("\(cause)") }
      // Safe: gai_strerror returns a constant string.
      let words = unsafe String(cString: gai_strerror(error))
      switch error {
      case EAI_NONAME, Int32(LARKSPUR_EAI_NODATA), Int32(LARKSPUR_EAI_ADDRFAMILY):
        throw .noSuchName(words)
      default: throw .failed(words)
      }
    }
    defer { unsafe freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = unsafe list
    // Safe: the list is ours until it is freed, and ends with nil.
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
