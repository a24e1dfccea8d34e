import LarkspurBytes
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Opening a connection, with every error that the kernel can return.
@Suite struct ConnectTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }

  init() throws {
    world = try ScriptedWorld()
  }

  static let addresses: [SocketAddress] = [.loopback(port: 1), .loopback(port: 2), .loopback(port: 3)]

  /// Opens a connection, and returns its steps with the ports of the addresses.
  func open(_ addresses: [SocketAddress] = addresses, deadline: Duration? = nil) -> Running<[ConnectionStep]> {
    world.run { [world] in
      let steps = Shared<[ConnectionStep]>([])
      let connection = try await Connection.open(
        to: addresses, on: world.loop, deadline: deadline.map { world.loop.now.advanced(by: $0) } ?? .never
      ) { event, _ in
        switch event {
        case .connecting(let address): steps.value.append(.connecting(address.port))
        case .connectFailed(let address, let error): steps.value.append(.failed(address.port, error))
        case .connected(let address): steps.value.append(.connected(address.port))
        default: break
        }
      }
      connection.close()
      return steps.value
    }
  }

  /// At most 64 addresses are tried, because a name server may send any number of them.
  @Test(arguments: [64, 65, 4000]) func soManyAddressesAreTried(count: Int) {
    for _ in 0..<64 { kernel.willConnect(.fails(.networkUnreachable)) }
    kernel.willConnect(.atOnce)
    let addresses = (1...count).map { SocketAddress.ipv4(0x0a00_0000 + UInt32($0), port: 80) }
    let running = world.run { [world] in
      _ = try await Connection.open(to: addresses, on: world.loop)
    }
    guard case .connectFailed(let attempts)? = running.transportError else {
      Issue.record("\(String(describing: running.result))")
      return
    }
    #expect(attempts.count == 64)
    #expect(world.leftovers == [])
  }

  enum ConnectionStep: Hashable, Sendable {
    case connecting(UInt16)
    case failed(UInt16, Errno)
    case connected(UInt16)
  }

  @Test(arguments: [ScriptedKernel.Connect.atOnce, .later(nil), .interrupted])
  func theFirstAddressAnswers(connect: ScriptedKernel.Connect) {
    kernel.willConnect(connect)
    #expect(open().value == [.connecting(1), .connected(1)])
    #expect(kernel.counts.sockets == 1)
    #expect(world.leftovers == [])
  }

  @Test func theLastAddressAnswers() {
    kernel.willConnect(.fails(.networkUnreachable), .later(.connectionRefused), .later(nil))
    #expect(
      open().value == [
        .connecting(1), .failed(1, .networkUnreachable), .connecting(2), .failed(2, .connectionRefused),
        .connecting(3), .connected(3),
      ])
    #expect(world.leftovers == [])
  }

  @Test func noAddressAnswers() {
    kernel.willConnect(.later(.connectionRefused), .later(.timedOut), .fails(.addressNotAvailable))
    #expect(
      open().transportError
        == .connectFailed([
          .init(address: .loopback(port: 1), error: .connectionRefused),
          .init(address: .loopback(port: 2), error: .timedOut),
          .init(address: .loopback(port: 3), error: .addressNotAvailable),
        ]))
    #expect(world.leftovers == [])
  }

  // MARK: - Parallel attempts (RFC 8305)

  @Test func aSilentAddressCostsOneDelay() {
    kernel.willConnect(.never, .later(nil))
    let running = open()
    world.advance(by: .milliseconds(249))
    #expect(kernel.counts.sockets == 1)
    world.advance(by: .milliseconds(1))
    #expect(running.value == [.connecting(1), .connecting(2), .connected(2)])
    // The losing socket is closed.
    #expect(world.leftovers == [])
  }

  @Test func theFirstMayAnswerAfterTheSecondHasBegun() {
    kernel.willConnect(.never, .never, .never)
    let running = open()
    world.advance(by: .milliseconds(250))
    world.advance(by: .milliseconds(250))
    #expect(kernel.counts.sockets == 3)
    kernel.peer(0).completeConnect()
    world.settle()
    #expect(running.value == [.connecting(1), .connecting(2), .connecting(3), .connected(1)])
    #expect(world.leftovers == [])
  }

  @Test func theDeadlineIsForAllTogether() {
    kernel.willConnect(.never, .never, .never)
    let running = open(deadline: .seconds(3))
    world.advance(by: .milliseconds(250))
    world.advance(by: .milliseconds(2749))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.connecting))
    #expect(world.leftovers == [])
  }

  @Test func cancellationOfARace() {
    kernel.willConnect(.never, .never, .never)
    let running = open()
    world.advance(by: .milliseconds(250))
    running.cancel()
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }

  /// If no descriptor is left for a second attempt, the first one continues.
  @Test func noSocketForTheSecond() {
    kernel.willConnect(.never)
    let running = open([.loopback(port: 1), .loopback(port: 2)])
    kernel.willFailToOpenSocket(.tooManyDescriptors)
    world.advance(by: .milliseconds(250))
    #expect(!running.isOver)
    kernel.peer(0).completeConnect()
    world.settle()
    #expect(running.value?.last == .connected(1))
    #expect(world.leftovers == [])
  }

  /// An address that has just failed is tried after the others, for 30 s.
  @Test func failuresAreRemembered() {
    kernel.willConnect(.later(.connectionRefused), .later(nil))
    #expect(open().value?.last == .connected(2))
    #expect(open().value == [.connecting(2), .connected(2)])
    world.advance(by: .seconds(30))
    #expect(open().value == [.connecting(1), .connected(1)])
    #expect(world.leftovers == [])
  }

  @Test func familiesTakeTurns() {
    let six = { (port: UInt16) in SocketAddress.ipv6(high: 0, low: 1, scope: 0, port: port) }
    kernel.willConnect(.fails(.networkUnreachable), .fails(.networkUnreachable), .fails(.networkUnreachable))
    let error = open([six(1), six(2), .loopback(port: 3)]).transportError
    guard case .connectFailed(let attempts)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(attempts.map(\.address.port) == [1, 3, 2])
  }

  @Test func noAddressAtAll() {
    #expect(open([]).transportError == .connectFailed([]))
  }

  @Test(arguments: [Errno.tooManyDescriptors, .tooManyDescriptorsInSystem, .noMemory])
  func noSocket(error: Errno) {
    kernel.willFailToOpenSocket(error)
    // Another address would fail in the same way, so it is not tried.
    #expect(open([.loopback(port: 1), .loopback(port: 2)]).transportError == .unavailable(error))
    #expect(world.leftovers == [])
    // Once there are descriptors again, connections can be opened.
    #expect(open([.loopback(port: 1)]).value?.last == .connected(1))
    #expect(world.leftovers == [])
  }

  @Test func noRoomInThePoller() {
    kernel.willFailToWatch(.noMemory)
    #expect(open().transportError == .unavailable(.noMemory))
    #expect(world.leftovers == [])
  }

  @Test func theDeadline() {
    kernel.willConnect(.never)
    let running = open([.loopback(port: 1)], deadline: .seconds(3))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(2999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.connecting))
    #expect(kernel.counts.sockets == 1)
    #expect(world.leftovers == [])
  }

  @Test func aDeadlineThatHasPassed() {
    kernel.willConnect(.never)
    #expect(open(deadline: .zero).transportError == .timedOut(.connecting))
    #expect(world.leftovers == [])
  }

  @Test func theConnectEndsWithTheDeadline() {
    // The event and the deadline fall into one tick: either may win, and nothing may be left behind.
    kernel.willConnect(.never)
    let running = open(deadline: .seconds(3))
    kernel.peer().completeConnect()
    kernel.advance(by: .seconds(3))
    world.settle()
    #expect(running.isOver)
    #expect(running.error == nil || running.transportError == .timedOut(.connecting))
    #expect(world.leftovers == [])
  }

  @Test func cancellation() {
    kernel.willConnect(.never)
    let running = open()
    running.cancel()
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }

  @Test func cancelledBeforeItBegins() {
    let running = world.start { [world] in
      let connection = try await Connection.open(to: Self.addresses, on: world.loop)
      connection.close()
    }
    running.cancel()
    world.settle()
    #expect(running.error == nil || running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }

  @Test func callsOnAnotherThread() async throws {
    // No thread runs this loop's ticks, so the test's thread is not the loop's.
    let world = try ScriptedWorld()
    await #expect(throws: TransportError.localMisuse(.notOnLoop)) {
      _ = try await Connection.open(to: Self.addresses, on: world.loop)
    }
    #expect(world.kernel.counts.sockets == 0)
  }
}
