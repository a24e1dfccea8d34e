import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

extension Connection {
  /// Looks up a host and connects to the first of its addresses that answers.
  ///
  /// - Parameters:
  ///   - host: A name, or an IP address without brackets.
  ///   - place: The place to connect to in place of the host, or `nil`.
  ///   - security: How to use TLS, or `nil` for plain TCP.
  ///   - deadline: The deadline for all of it.
  ///   - timeouts: The time limits of the parts: `resolve`, `connect`, `secure`, and `total` for all of it.
  public static func open(
    host: String, port: UInt16, at place: Route.Place? = nil, security: Security? = nil, resolver: Resolver = .shared,
    from local: LocalEndpoint? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    timeouts: Timeouts = Timeouts(), limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    // A host that is no valid server name for TLS fails before the look-up.
    let securing = try security.map { security throws(TransportError) in try Securing(security, host, port) }
    let (host, port) = place.map { ($0.host, $0.port) } ?? (host, port)
    let deadline = timeouts.end(from: loop.now, within: deadline)
    let addresses = try await resolve(
      host, port: port, by: resolver, on: loop, deadline: deadline, timeouts: timeouts, observer: observer)
    return try await open(
      to: addresses, securing: securing, from: local, on: loop, deadline: deadline, timeouts: timeouts, limits: limits,
      observer: observer)
  }

  /// Connects to the first of `addresses` that answers.
  ///
  /// - Parameters:
  ///   - host: The host for which the certificate must be valid. Not looked up.
  ///   - port: The port under which TLS sessions are kept, or `nil` for the port of the address.
  ///   - security: How to use TLS, or `nil` for plain TCP.
  ///   - deadline: The deadline for all of it.
  ///   - timeouts: The time limits of the parts: `connect`, `secure`, and `total` for all of it.
  public static func open(
    to addresses: [SocketAddress], as host: String, port: UInt16? = nil, security: Security?,
    from local: LocalEndpoint? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    timeouts: Timeouts = Timeouts(), limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let securing = try security.map { security throws(TransportError) in try Securing(security, host, port) }
    return try await open(
      to: addresses, securing: securing, from: local, on: loop,
      deadline: timeouts.end(from: loop.now, within: deadline), timeouts: timeouts, limits: limits,
      observer: observer)
  }

  /// The parameters of a TLS handshake.
  private struct Securing {
    let security: Security
    let server: ServerName
    /// The port under which TLS sessions are kept, or `nil` for the port of the address.
    let port: UInt16?

    init(_ security: Security, _ host: String, _ port: UInt16?) throws(TransportError) {
      self.security = security
      self.port = port
      server = try Connection.serverName(host)
    }
  }

  private static func open(
    to addresses: [SocketAddress], securing: Securing?, from local: LocalEndpoint?, on loop: ClientLoop,
    deadline: Deadline, timeouts: Timeouts, limits: Limits, observer: Observer?
  ) async throws(TransportError) -> Connection {
    if addresses.count == 1, local == nil, timeouts.connect == nil, timeouts.secure == nil {
      return try await open(
        toOnly: addresses[0], securing: securing, on: loop, deadline: deadline, limits: limits, observer: observer)
    }
    let channel = try await Dial.connect(
      to: addresses, from: local, on: loop, deadline: deadline, timeouts: timeouts, observer: observer)
    let connection = Connection(over: channel, limits: limits, observer: observer)
    guard let securing else { return connection }
    guard let port = securing.port ?? connection.address?.port else { throw .connectionClosed }
    try await connection.secure(
      by: securing.security, as: securing.server, port: port, timeouts: timeouts, deadline: deadline)
    return connection
  }

  /// Connects to a single address. There is no race, so one cancellation scope covers the connect and the handshake.
  ///
  /// Performance: installing a cancellation handler costs 1,000 instructions.
  private static func open(
    toOnly address: SocketAddress, securing: Securing?, on loop: ClientLoop, deadline: Deadline, limits: Limits,
    observer: Observer?
  ) async throws(TransportError) -> Connection {
    let (channel, isConnected) = try Dial.start(address, on: loop, deadline: deadline, observer: observer)
    let connection = Connection(over: channel, limits: limits, observer: observer)
    if isConnected, securing == nil { return connection }
    try await channel.cancelledWithTask { () async throws(TransportError) in
      if !isConnected { try await Dial.finish(channel, observer: observer) }
      guard let securing else { return }
      try await connection.makeSecure(
        by: securing.security, as: securing.server, port: securing.port ?? address.port, deadline: deadline)
    }
    return connection
  }

  static func serverName(_ host: String) throws(TransportError) -> ServerName {
    guard let server = ServerName(host: host) else { throw .tls(TLSError(.hostInvalid)) }
    return server
  }

  /// Looks up a host and reports that to the observer.
  static func resolve(
    _ host: String, port: UInt16, by resolver: Resolver, on loop: ClientLoop, deadline: Deadline, timeouts: Timeouts,
    observer: Observer?
  ) async throws(TransportError) -> [SocketAddress] {
    observer?(.resolving(host: host), loop.kernel.now())
    // Performance: without a limit there is no wrapper, which would add a frame to each connection's way.
    let addresses =
      timeouts.resolve == nil
      ? try await resolver.addresses(of: host, port: port, deadline: deadline, on: loop)
      : try await limited(by: timeouts.resolve, as: .resolve, in: .resolving, within: deadline, on: loop) {
        (deadline) async throws(TransportError) in
        try await resolver.addresses(of: host, port: port, deadline: deadline, on: loop)
      }
    observer?(.resolved(addresses), loop.kernel.now())
    return addresses
  }

  /// Connects to the first of `addresses` that answers (RFC 8305). IPv6 and IPv4 addresses alternate; those that have
  /// failed a short while ago come last. An attempt starts when one before it has failed, or 250 ms after the one
  /// before it.
  public static func open(
    to addresses: [SocketAddress], from local: LocalEndpoint? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let channel = try await Dial.connect(
      to: addresses, from: local, on: loop, deadline: deadline, timeouts: Timeouts(), observer: observer)
    return Connection(over: channel, limits: limits, observer: observer)
  }
}
