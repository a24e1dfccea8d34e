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
    if security != nil, ServerName(host: host) == nil { throw .tls(TLSError(.hostInvalid)) }
    observer?(.resolving(host: host), loop.kernel.now())
    let addresses = try await resolve(host, port: port, on: loop, deadline: deadline)
    observer?(.resolved(addresses), loop.kernel.now())
    return try await open(
      to: addresses, as: host, security: security, on: loop, deadline: deadline, limits: limits, observer: observer)
  }

  /// Connects to the first of `addresses` that answers, trying one after another. With `security`, TLS is spoken then,
  /// and the certificate has to be for `host`.
  package static func open(
    to addresses: [SocketAddress], as host: String, security: Security?, on loop: ClientLoop,
    deadline: Deadline = .never, limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    let server = ServerName(host: host)
    if security != nil, server == nil { throw .tls(TLSError(.hostInvalid)) }
    let connection = try await open(to: addresses, on: loop, deadline: deadline, limits: limits, observer: observer)
    if let security, let server, let port = connection.address?.port {
      observer?(.securing(server), loop.kernel.now())
      try await connection.secure(by: security, as: server, port: port, deadline: deadline)
    }
    return connection
  }

  /// Connects to the first of `addresses` that answers, trying one after another.
  package static func open(
    to addresses: [SocketAddress], on loop: ClientLoop, deadline: Deadline = .never, limits: Limits = Limits(),
    observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    var attempts: [TransportError.Attempt] = []
    for address in addresses {
      observer?(.connecting(address), loop.kernel.now())
      do throws(Errno) {
        let channel = try await connect(to: address, on: loop, deadline: deadline)
        observer?(.connected(address), loop.kernel.now())
        return Connection(over: channel, limits: limits, observer: observer)
      } catch {
        observer?(.connectFailed(address, error), loop.kernel.now())
        if Self.resourceErrors.contains(error) { throw .unavailable(error) }
        if Task.isCancelled { throw .cancelled }
        if deadline <= loop.kernel.now() { throw .timedOut(.connecting) }
        attempts.append(TransportError.Attempt(address: address, error: error))
      }
    }
    throw .connectFailed(attempts)
  }

  /// What another address would fail with as well.
  private static let resourceErrors: Set<Errno> = [
    .tooManyDescriptors, .tooManyDescriptorsInSystem, .noMemory, .noBufferSpace,
  ]

  private static func connect(
    to address: SocketAddress, on loop: ClientLoop, deadline: Deadline
  ) async throws(Errno) -> Channel {
    let channel = try Channel(to: address, on: loop)
    do throws(Errno) {
      channel.setDeadline(deadline)
      if try channel.connect() { return channel }
      let scope = channel.beginScope()
      defer { channel.endScope(scope) }
      let canceller = channel.canceller(of: scope)
      let interruption = await withTaskCancellationHandler {
        do throws(Channel.Interruption) {
          try await channel.waitForConnection()
          return nil as Channel.Interruption?
        } catch {
          return error
        }
      } onCancel: {
        canceller.cancel()
      }
      // The caller tells a cancellation by asking the task.
      if interruption != nil { throw .timedOut }
      try channel.finishConnecting()
      return channel
    } catch {
      channel.close()
      throw error
    }
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
