import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

extension Connection {
  /// Looks a host up and connects to the first of its addresses that answers. `host` is a name or an IP
  /// address without brackets. With `security`, TLS is spoken. `deadline` is for all of it.
  package static func open(
    host: String, port: UInt16, security: Security? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    // It would end the name on its way to the system's resolver.
    guard !host.utf8.contains(0) else { throw .resolutionFailed(host: host, reason: "the name holds a NUL") }
    let server = try security.map { _ throws(TransportError) in try serverName(host) }
    observer?(.resolving(host: host), loop.kernel.now())
    let addresses = try await resolve(host, port: port, on: loop, deadline: deadline)
    observer?(.resolved(addresses), loop.kernel.now())
    let connection = try await open(to: addresses, on: loop, deadline: deadline, limits: limits, observer: observer)
    if let security, let server {
      try await connection.secure(by: security, as: server, port: port, deadline: deadline)
    }
    return connection
  }

  /// Connects to the first of `addresses` that answers. With `security`, TLS is spoken then, and the certificate has to be for `host`.
  package static func open(
    to addresses: [SocketAddress], as host: String, security: Security?, on loop: ClientLoop,
    deadline: Deadline = .never, limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    let server = try security.map { _ throws(TransportError) in try serverName(host) }
    let connection = try await open(to: addresses, on: loop, deadline: deadline, limits: limits, observer: observer)
    if let security, let server, let port = connection.address?.port {
      try await connection.secure(by: security, as: server, port: port, deadline: deadline)
    }
    return connection
  }

  private static func serverName(_ host: String) throws(TransportError) -> ServerName {
    guard let server = ServerName(host: host) else { throw .tls(TLSError(.hostInvalid)) }
    return server
  }

  /// Connects to the first of `addresses` that answers (RFC 8305): the families in turn, each with a start of 250 ms.
  package static func open(
    to addresses: [SocketAddress], on loop: ClientLoop, deadline: Deadline = .never, limits: Limits = Limits(),
    observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let channel = try await Dial.connect(to: addresses, on: loop, deadline: deadline, observer: observer)
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
    case .answered(.unavailable(let error)): throw .unavailable(error)
    case .cancelled: throw .cancelled
    case .timedOut: throw .timedOut(.resolving)
    }
  }
}
