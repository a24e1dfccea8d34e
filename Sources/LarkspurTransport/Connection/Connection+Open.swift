import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

extension Connection {
  /// Looks a host up and connects to the first of its addresses that answers. `host` is a name or an IP
  /// address without brackets. With `security`, TLS is spoken. `deadline` is for all of it, `timeouts` for its parts.
  package static func open(
    host: String, port: UInt16, security: Security? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    timeouts: Timeouts = Timeouts(), limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    // It would end the name on its way to the system's resolver.
    guard !host.utf8.contains(0) else { throw .resolutionFailed(host: host, reason: "the name holds a NUL") }
    if security != nil, ServerName(host: host) == nil { throw .tls(TLSError(.hostInvalid)) }
    observer?(.resolving(host: host), loop.kernel.now())
    let deadline = min(deadline, loop.now.advanced(by: timeouts.total))
    let addresses = try await limited(by: timeouts.resolve, as: .resolve, in: .resolving, within: deadline, on: loop) {
      (deadline) async throws(TransportError) in
      try await resolve(host, port: port, on: loop, deadline: deadline)
    }
    observer?(.resolved(addresses), loop.kernel.now())
    return try await open(
      to: addresses, as: host, security: security, on: loop, deadline: deadline, timeouts: timeouts, limits: limits,
      observer: observer)
  }

  /// Connects to the first of `addresses` that answers. With `security`, TLS is spoken then, and the certificate has to be for `host`.
  package static func open(
    to addresses: [SocketAddress], as host: String, security: Security?, on loop: ClientLoop,
    deadline: Deadline = .never, timeouts: Timeouts = Timeouts(), limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let deadline = min(deadline, loop.now.advanced(by: timeouts.total))
    let server = ServerName(host: host)
    if security != nil, server == nil { throw .tls(TLSError(.hostInvalid)) }
    let connection = try await limited(
      by: timeouts.connect, as: .connect, in: .connecting, within: deadline, on: loop
    ) { (deadline) async throws(TransportError) in
      try await open(to: addresses, on: loop, deadline: deadline, limits: limits, observer: observer)
    }
    if let security, let server, let port = connection.address?.port {
      observer?(.securing(server), loop.kernel.now())
      try await limited(by: timeouts.secure, as: .secure, in: .securing, within: deadline, on: loop) {
        (deadline) async throws(TransportError) in
        try await connection.secure(by: security, as: server, port: port, deadline: deadline)
      }
    }
    return connection
  }

  /// Connects to the first of `addresses` that answers (RFC 8305): the families in turn, each with a start of 250 ms.
  package static func open(
    to addresses: [SocketAddress], on loop: ClientLoop, deadline: Deadline = .never, limits: Limits = Limits(),
    observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let channel = try await Dial(to: addresses, on: loop, observer: observer).connect(deadline: deadline)
    return Connection(over: channel, limits: limits, observer: observer)
  }

  private static func resolve(
    _ host: String, port: UInt16, on loop: ClientLoop, deadline: Deadline
  ) async throws(TransportError) -> [SocketAddress] {
    if let address = SocketAddress(literal: host, port: port) { return [address] }
    let lookup: Answer<Lookup.Outcome>
    do throws(Errno) {
      lookup = try Lookup.start(host: host, port: port)
    } catch {
      throw .unavailable(error)
    }
    switch await lookup.outcome(deadline: deadline, on: loop) {
    case .answered(.found(let addresses)): return addresses
    case .answered(.failed(let reason)): throw .resolutionFailed(host: host, reason: reason)
    case .cancelled: throw .cancelled
    case .timedOut: throw .timedOut(.resolving)
    }
  }
}
