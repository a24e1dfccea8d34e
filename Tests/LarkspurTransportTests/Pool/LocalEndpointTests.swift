import LarkspurBytes
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Connections that begin at a chosen address or interface.
@Suite struct LocalEndpointTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }

  init() throws {
    world = try ScriptedWorld()
  }

  static let four = SocketAddress.ipv4(0xc000_0201, port: 80)
  static let six = SocketAddress.ipv6(high: 0x2001_0db8 << 32, low: 1, scope: 0, port: 80)
  static let path = SocketAddress.unix(path: "/run/a.socket")
  static let ownFour = SocketAddress.ipv4(0x0a00_0005, port: 0)
  static let ownSix = SocketAddress.ipv6(high: 0xfd00 << 48, low: 5, scope: 0, port: 0)

  func open(from local: LocalEndpoint, to addresses: [SocketAddress]) -> Running<SocketAddress?> {
    world.run { [world] in
      let connection = try await Connection.open(to: addresses, from: local, on: world.loop)
      defer { connection.close() }
      return connection.address
    }
  }

  @Test(
    arguments: [
      (LocalEndpoint(), []), (LocalEndpoint(address: ownFour), [.deferPort, .bind(ownFour)]),
      (LocalEndpoint(address: ownFour.with(port: 99)), [.bind(ownFour.with(port: 99))]),
      (LocalEndpoint(interface: "eth0"), [.bindInterface("eth0")]),
      (
        LocalEndpoint(address: ownFour, interface: "a23456789012345"),
        [.bindInterface("a23456789012345"), .deferPort, .bind(ownFour)]
      ), (LocalEndpoint(trafficClass: 0x20), [.setTrafficClass(0x20)]),
      (LocalEndpoint(interface: "eth0", trafficClass: 0xb8), [.setTrafficClass(0xb8), .bindInterface("eth0")]),
    ] as [(LocalEndpoint, [ScriptedKernel.LocalCall])])
  func theCalls(local: LocalEndpoint, calls: [ScriptedKernel.LocalCall]) {
    #expect(open(from: local, to: [Self.four]).value == .some(Self.four))
    #expect(kernel.peer().localCalls == [.setNoDelay] + calls)
    #expect(world.leftovers == [])
  }

  @Test(
    arguments: [
      (LocalEndpoint(address: ownFour), four), (LocalEndpoint(address: ownSix), six),
      (LocalEndpoint(interface: "lo"), six), (LocalEndpoint(), path), (LocalEndpoint(trafficClass: 0x20), path),
    ])
  func otherFamiliesAreNotTried(local: LocalEndpoint, address: SocketAddress) {
    #expect(open(from: local, to: [Self.path, Self.six, Self.four]).value == .some(address))
    #expect(kernel.counts.sockets == 1)
    #expect(world.leftovers == [])
  }

  @Test func noAddressOfItsFamily() {
    let local = LocalEndpoint(address: Self.ownFour, interface: "eth0")
    let path = LocalEndpoint(address: Self.path)
    #expect(open(from: path, to: [Self.path]).transportError == .localEndpointUnusable(path, nil))
    let error = open(from: local, to: [Self.six, Self.path]).transportError
    #expect(error == .localEndpointUnusable(local, nil))
    #expect(
      error.map { "\($0)" }
        == "cannot connect from the localEndpoint 10.0.0.5:0 on eth0: none of the host's addresses is reached from there"
    )
    #expect(kernel.counts.sockets == 0)
    #expect(open(from: local, to: []).transportError == .connectFailed([]))
    #expect(world.leftovers == [])
  }

  @Test(arguments: [LocalEndpoint(address: ownFour), LocalEndpoint(interface: "eth0")])
  func theKernelRefuses(local: LocalEndpoint) {
    kernel.willFailToBind(.addressNotAvailable)
    let addresses = [Self.four, Self.four.with(port: 81)]
    #expect(open(from: local, to: addresses).transportError == .localEndpointUnusable(local, .addressNotAvailable))
    #expect(kernel.counts.sockets == 1)
    // The error does not count against the remote address.
    #expect(open(from: local, to: addresses).value == .some(Self.four))
    #expect(world.leftovers == [])
  }

  /// A chosen local port is used by the first attempt, which continues when the second one is refused.
  @Test func theSecondAttemptIsRefused() {
    kernel.willConnect(.never)
    let running = open(
      from: LocalEndpoint(address: Self.ownFour.with(port: 99)), to: [Self.four, Self.four.with(port: 81)])
    kernel.willFailToBind(.addressInUse)
    world.advance(by: .milliseconds(250))
    #expect(kernel.counts.sockets == 2 && !running.isOver)
    kernel.peer(0).completeConnect()
    world.settle()
    #expect(running.value == .some(Self.four))
    #expect(world.leftovers == [])
  }

  /// The kernel would take the empty name for "any interface", and would truncate the second name.
  @Test(arguments: ["", "a234567890123456", "a/b", "a b", "lo\0"])
  func namesThatNoInterfaceHas(name: String) {
    let local = LocalEndpoint(interface: name)
    #expect(open(from: local, to: [Self.four]).transportError == .localEndpointUnusable(local, .noSuchDevice))
    #expect(kernel.peer().localCalls == [.setNoDelay])
    #expect(world.leftovers == [])
  }

  /// Before a name is looked up, the route finds that the machine lacks the interface.
  @Test func anInterfaceThatIsMissing() throws {
    let tests = try PoolTests()
    let pool = tests.pool()
    var route = Route(host: "a.invalid", port: 80)
    route.local = LocalEndpoint(interface: "eth9")
    let running = tests.fetch(through: pool, route: route)
    tests.world.settle()
    #expect(running.transportError == .localEndpointUnusable(LocalEndpoint(interface: "eth9"), .noSuchDevice))
    #expect(tests.kernel.counts.sockets == 0)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func texts() throws {
    #expect(try LocalEndpoint(address: "10.0.0.5") == LocalEndpoint(address: Self.ownFour))
    #expect(
      try LocalEndpoint(address: "fd00::5", interface: "lo") == LocalEndpoint(address: Self.ownSix, interface: "lo"))
    for text in ["", "eth0", "10.0.0.5:80", "fe80::1%nosuch0"] {
      #expect(throws: LocalEndpoint.InvalidAddress(text: text)) { try LocalEndpoint(address: text) }
    }
  }

  @Test func combinations() {
    let own = LocalEndpoint(interface: "eth0", trafficClass: 8)
    #expect(LocalEndpoint.endpoint(nil, trafficClass: 0, usesMultipath: false) == nil)
    #expect(LocalEndpoint.endpoint(own, trafficClass: 0, usesMultipath: false) == own)
    #expect(
      LocalEndpoint.endpoint(own, trafficClass: 0, usesMultipath: true)
        == LocalEndpoint(interface: "eth0", trafficClass: 8, usesMultipath: true))
    #expect(
      LocalEndpoint.endpoint(own, trafficClass: 4, usesMultipath: false)
        == LocalEndpoint(interface: "eth0", trafficClass: 4))
  }

  // MARK: - The real kernel

  @Test(
    arguments: [
      (LocalEndpoint(address: .ipv4(0x7f00_0005, port: 0)), nil), (LocalEndpoint(interface: "lo"), nil),
      (LocalEndpoint(address: .loopback(port: 0), interface: "lo"), nil),
      // TEST-NET-3.
      (LocalEndpoint(address: .ipv4(0xcb00_7101, port: 0)), .addressNotAvailable),
      (LocalEndpoint(interface: "nosuch0"), .noSuchDevice),
    ] as [(LocalEndpoint, Errno?)])
  func really(local: LocalEndpoint, error: Errno?) async throws {
    let server = try TestServer()
    let loop = try ClientLoop()
    let outcome = await loop.run { () async -> TransportError? in
      do throws(TransportError) {
        let addresses: [SocketAddress] = [.loopback(port: UInt16(server.port))]
        let connection = try await Connection.open(to: addresses, from: local, on: loop)
        connection.close()
        return nil
      } catch {
        return error
      }
    }
    loop.stop()
    #expect(outcome == error.map { .localEndpointUnusable(local, $0) })
  }

  /// The socket is really bound to the address: where a listener uses the address and port, binding fails.
  @Test func theAddressIsTaken() async throws {
    let listener = try BlockingListener(address: .ipv4(0x7f00_0005, port: 0))
    let local = LocalEndpoint(address: .ipv4(0x7f00_0005, port: listener.port))
    let server = try TestServer()
    let loop = try ClientLoop()
    await #expect(throws: TransportError.localEndpointUnusable(local, .addressInUse)) {
      try await loop.run {
        let addresses: [SocketAddress] = [.loopback(port: UInt16(server.port))]
        try await Connection.open(to: addresses, from: local, on: loop).close()
      }
    }
    loop.stop()
  }

  @Test func zones() {
    #expect(NetworkInterface.index(ofZone: "lo", kernel: LinuxKernel.shared) == 1)
    #expect(NetworkInterface.index(ofZone: "nosuch0", kernel: LinuxKernel.shared) == nil)
  }
}
