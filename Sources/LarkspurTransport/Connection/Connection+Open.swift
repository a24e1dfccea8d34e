import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

extension Connection {
  /// Looks a host up and connects to the first of its addresses that answers. `host` is a name or an IP
  /// address without brackets. With `security`, TLS is spoken. `deadline` is for all of it, `timeouts` for its parts.
  package static func open(
    host: String, port: UInt16, security: Security? = nil, resolver: Resolver = .shared,
    from local: LocalEndpoint? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    timeouts: Timeouts = Timeouts(), limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    // A host that TLS cannot be for is not looked up.
    if security != nil { _ = try serverName(host) }
    let deadline = min(deadline, loop.now.advanced(by: timeouts.total))
    let addresses =
      timeouts.resolve == nil
      ? try await resolve(host, port: port, by: resolver, on: loop, deadline: deadline, observer: observer)
      : try await limited(by: timeouts.resolve, as: .resolve, in: .resolving, within: deadline, on: loop) {
        (deadline) async throws(TransportError) in
        try await resolve(host, port: port, by: resolver, on: loop, deadline: deadline, observer: observer)
      }
    return try await open(
      to: addresses, as: host, port: port, security: security, from: local, on: loop, deadline: deadline,
      timeouts: timeouts, limits: limits, observer: observer)
  }

  /// Connects to the first of `addresses` that answers. With `security`, TLS is spoken then, and the certificate has to be
  /// for `host`. `port`: what TLS sessions are kept for; nil: the address's.
  package static func open(
    to addresses: [SocketAddress], as host: String, port: UInt16? = nil, security: Security?,
    from local: LocalEndpoint? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    timeouts: Timeouts = Timeouts(), limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let deadline = min(deadline, loop.now.advanced(by: timeouts.total))
    let server = try security.map { _ throws(TransportError) in try serverName(host) }
    // Without times for the parts nothing is wrapped: each wrapper is a frame more on the way of every connection.
    let connection =
      timeouts.connect == nil
      ? try await open(to: addresses, from: local, on: loop, deadline: deadline, limits: limits, observer: observer)
      : try await limited(by: timeouts.connect, as: .connect, in: .connecting, within: deadline, on: loop) {
        (deadline) async throws(TransportError) in
        try await open(to: addresses, from: local, on: loop, deadline: deadline, limits: limits, observer: observer)
      }
    guard let security, let server else { return connection }
    guard let port = port ?? connection.address?.port else { throw .connectionClosed }
    guard timeouts.secure != nil else {
      try await connection.secure(by: security, as: server, port: port, deadline: deadline)
      return connection
    }
    try await limited(by: timeouts.secure, as: .secure, in: .securing, within: deadline, on: loop) {
      (deadline) async throws(TransportError) in
      try await connection.secure(by: security, as: server, port: port, deadline: deadline)
    }
    return connection
  }

  static func serverName(_ host: String) throws(TransportError) -> ServerName {
    guard let server = ServerName(host: host) else { throw .tls(TLSError(.hostInvalid)) }
    return server
  }

  /// Looks a host up, and tells of it.
  static func resolve(
    _ host: String, port: UInt16, by resolver: Resolver, on loop: ClientLoop, deadline: Deadline, observer: Observer?
  ) async throws(TransportError) -> [SocketAddress] {
    observer?(.resolving(host: host), loop.kernel.now())
    let addresses = try await resolver.addresses(of: host, port: port, deadline: deadline, on: loop)
    observer?(.resolved(addresses), loop.kernel.now())
    return addresses
  }

  /// Connects to the first of `addresses` that answers (RFC 8305): the families in turn, each with a start of 250 ms.
  package static func open(
    to addresses: [SocketAddress], from local: LocalEndpoint? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let channel = try await Dial.connect(
      to: addresses, from: local, on: loop, deadline: deadline, observer: observer)
    return Connection(over: channel, limits: limits, observer: observer)
  }
}
