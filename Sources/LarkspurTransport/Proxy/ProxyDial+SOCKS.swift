import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

extension ProxyDial {
  /// Maximum number of a host's addresses that are tried through a proxy that does not look up names. Each try costs a
  /// connection.
  static let addressesMax = 4

  func openBySOCKS() async throws(TransportError) -> Tunnel {
    var failure = TransportError.proxy(ProxyError(proxy, .socks(.noIPv4Address)))
    for target in try await targets() {
      do throws(TransportError) {
        return try await open(to: target)
      } catch {
        guard case .proxy(let problem) = error, case .socks(.refused(let refusal)) = problem.failure,
          refusal.dependsOnAddress
        else { throw error }
        failure = error
      }
    }
    throw failure
  }

  /// Returns the targets to request from the proxy, one after another until one succeeds.
  private func targets() async throws(TransportError) -> [SOCKSMachine.Target] {
    if let address = HostAddress(host)?.address { return [.address(address)] }
    guard proxy.kind.resolvesHere else { return [.name(host)] }
    let found = try await Connection.resolve(
      host, port: port, by: resolver, on: loop, deadline: deadline, timeouts: timeouts, observer: observer)
    let addresses = found.compactMap(IPAddress.init)
    let known = addresses.filter { if case .ipv6 = $0 { proxy.kind != .socks4 } else { true } }
    return known.prefix(Self.addressesMax).map { .address($0) }
  }

  private func open(to target: SOCKSMachine.Target) async throws(TransportError) -> Tunnel {
    let channel = try await connectChannel()
    notify(.tunnelling(to: authority(host, port), through: proxy))
    do throws(TransportError) {
      return try await channel.cancelledWithTask { () async throws(TransportError) in
        try await negotiate(target, over: channel)
      }
    } catch {
      channel.close()
      throw blaming(error)
    }
  }

  private func connectChannel() async throws(TransportError) -> Channel {
    do throws(TransportError) {
      let addresses = try await Connection.resolve(
        proxy.host, port: proxy.port, by: resolver, on: loop, deadline: deadline, timeouts: timeouts, observer: observer
      )
      return try await Dial.connect(
        to: addresses, from: local, on: loop, deadline: deadline, timeouts: timeouts, observer: observer)
    } catch {
      throw blaming(error)
    }
  }

  private func negotiate(_ target: SOCKSMachine.Target, over channel: Channel) async throws(TransportError) -> Tunnel {
    var machine = SOCKSMachine(proxy.kind, credentials: proxy.credentials, target: target, port: port)
    var actions: SOCKSMachine.Actions = []
    var output = ByteQueue()
    // The answers are short. Bytes behind them wait in the kernel, or go to the tunnel.
    var input = Chunk(capacity: 1024)
    machine.start(into: &actions)
    while true {
      for action in actions {
        switch action {
        case .send(let bytes): output.append(bytes)
        case .establish:
          var received: [UInt8] = []
          received.append(copying: input.bytes)
          return Tunnel(channel: channel, layers: .plain, received: received)
        case .fail(let error): throw .proxy(ProxyError(proxy, .socks(error)))
        }
      }
      actions = []
      do throws(Errno) {
        if !output.isEmpty { _ = try channel.send(&output) }
        if channel.isReadable {
          switch try channel.receive(into: &input) {
          case .bytes:
            input.drop(machine.received(input.bytes, into: &actions))
            continue
          case .endOfStream:
            machine.peerClosed(into: &actions)
            continue
          case .wouldBlock: break
          }
        }
      } catch {
        throw .connectionLost(.tunnelling, error)
      }
      do throws(Channel.Interruption) {
        try await channel.wait(writing: !output.isEmpty)
      } catch {
        switch error {
        case .timedOut: throw .timedOut(.tunnelling)
        case .cancelled: throw .cancelled
        case .busy: throw .localMisuse(.exchangeRunning)
        }
      }
    }
  }
}

extension IPAddress {
  /// Creates the address without its port, or returns `nil` for a Unix-domain socket.
  init?(_ address: SocketAddress) {
    switch address {
    case .ipv4(let number, _): self = .ipv4(number)
    case .ipv6(let high, let low, _, _): self = .ipv6(high: high, low: low)
    case .unix: return nil
    }
  }
}
