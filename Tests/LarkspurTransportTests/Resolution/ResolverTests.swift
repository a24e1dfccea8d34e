import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

@Suite struct ResolverTests {
  let world: ScriptedWorld
  let names = ScriptedNames()

  init() throws {
    world = try ScriptedWorld()
  }

  static let one = SocketAddress.ipv4(0x0a00_0001, port: 0)
  static let two = SocketAddress.ipv6(high: 0xfd00 << 48, low: 2, scope: 0, port: 0)
  static let six = SocketAddress.ipv6(high: 0, low: 1, scope: 0, port: 80)

  func resolver(
    _ overrides: HostOverrides = HostOverrides(), limits: NameLimits = NameLimits(), source: ScriptedNames? = nil
  ) -> Resolver {
    Resolver(source: source ?? names, overrides: overrides, limits: limits, kernel: world.kernel)
  }

  func ask(
    _ resolver: Resolver, _ host: String, port: UInt16 = 80, deadline: Duration? = nil
  ) -> Running<[SocketAddress]> {
    world.run { [world] in
      try await resolver.addresses(
        of: host, port: port, deadline: deadline.map { world.loop.now.advanced(by: $0) } ?? .never, on: world.loop)
    }
  }

  func isRefused(_ running: Running<[SocketAddress]>, _ reason: String) -> Bool {
    guard case .resolutionFailed(_, reason)? = running.transportError else { return false }
    return true
  }

  // MARK: - Names that need no lookup

  @Test(
    arguments: [
      ("127.0.0.1", [.loopback(port: 80)]), ("::1", [six]), ("0:0:0:0:0:0:0:1", [six]),
      ("fe80::1%eth0", [.ipv6(high: 0xfe80 << 48, low: 1, scope: 4, port: 80)]),
      ("FE80::1%7", [.ipv6(high: 0xfe80 << 48, low: 1, scope: 7, port: 80)]),
      ("febf::1%eth0", [.ipv6(high: 0xfebf << 48, low: 1, scope: 4, port: 80)]),
      ("fe80::1", [.ipv6(high: 0xfe80 << 48, low: 1, scope: 0, port: 80)]),
      ("localhost", [six, .loopback(port: 80)]), ("LOCALHOST.", [six, .loopback(port: 80)]),
      ("a.b.LocalHost", [six, .loopback(port: 80)]), ("x.localhost.", [six, .loopback(port: 80)]),
    ] as [(String, [SocketAddress])])
  func knownWithoutAsking(host: String, addresses: [SocketAddress]) {
    world.kernel.addInterface("eth0", index: 4)
    #expect(ask(resolver(), host).value == addresses)
    #expect(names.asked == [])
    #expect(world.leftovers == [])
  }

  /// A resolver for one family has no other addresses, of names that are looked up or known.
  @Test func oneFamily() {
    names.willAnswer("example.org", .found([Self.one, Self.two]))
    let resolver = Resolver(source: names, family: .ipv4, kernel: world.kernel)
    #expect(ask(resolver, "example.org").value == [Self.one.with(port: 80)])
    #expect(ask(resolver, "localhost").value == [.loopback(port: 80)])
    #expect(isRefused(ask(resolver, "::1"), "it has no IPv4 address"))
    let other = Resolver(source: names, family: .ipv6, kernel: world.kernel)
    #expect(ask(other, "localhost").value == [Self.six])
    #expect(isRefused(ask(other, "127.0.0.1"), "it has no IPv6 address"))
  }

  @Test(
    arguments: [
      ("", HostName.Invalid.empty.rawValue), ("a..b", HostName.Invalid.labelEmpty.rawValue),
      ("127.1", HostName.Invalid.number.rawValue), ("0x7f.1", HostName.Invalid.number.rawValue),
      ("1.2.3.4.", HostName.Invalid.number.rawValue), ("127.0.0.1\0.example", HostName.Invalid.byteIllegal.rawValue),
      ("::1\0", HostName.Invalid.byteIllegal.rawValue), ("[::1]", HostName.Invalid.byteIllegal.rawValue),
      ("::1%eth0", HostName.Invalid.byteIllegal.rawValue), ("fec0::1%eth0", HostName.Invalid.byteIllegal.rawValue),
      ("1.2.3.4%eth0", HostName.Invalid.byteIllegal.rawValue), ("fe80::1%nosuch", "no network interface is \"nosuch\""),
      ("fe80::1%", "no network interface is \"\""), ("fe80::1%0", "no network interface is \"0\""),
      ("fe80::1%+4", "no network interface is \"+4\""),
      ("fe80::1%4294967296", "no network interface is \"4294967296\""),
      ("b\u{fc}cher.example", HostName.Invalid.notASCII.rawValue),
    ])
  func refusedWithoutAsking(host: String, reason: String) {
    world.kernel.addInterface("eth0", index: 4)
    let running = ask(resolver(), host)
    #expect(running.transportError == .resolutionFailed(host: host, reason: reason))
    #expect(names.asked == [])
    #expect(world.leftovers == [])
  }

  @Test func overrides() {
    var overrides = HostOverrides()
    overrides.set("Example.ORG", to: .addresses(["10.0.0.1", "fd00::2"]))
    overrides.set("example.org.", port: 8080, to: .addresses(["127.0.0.1"]))
    overrides.set("localhost", to: .addresses(["10.0.0.1"]))
    overrides.set("[::9]", to: .addresses(["10.0.0.1"]))
    overrides.set("odd name", port: 1, to: .addresses(["fd00::2"]))
    overrides.set("elsewhere.example", to: .host("other.example"))
    overrides.set("*", port: 81, to: .addresses(["10.0.0.1"]))
    let resolver = resolver(overrides)
    #expect(ask(resolver, "EXAMPLE.org.").value == [Self.one.with(port: 80), Self.two.with(port: 80)])
    #expect(ask(resolver, "example.org", port: 8080).value == [.loopback(port: 8080)])
    #expect(ask(resolver, "localhost").value == [Self.one.with(port: 80)])
    #expect(ask(resolver, "::9").value == [Self.one.with(port: 80)])
    #expect(ask(resolver, "odd name", port: 1).value == [Self.two.with(port: 1)])
    #expect(ask(resolver, "any.example", port: 81).value == [Self.one.with(port: 81)])
    #expect(isRefused(ask(resolver, "odd name", port: 2), HostName.Invalid.byteIllegal.rawValue))
    #expect(names.asked == [])
    _ = ask(resolver, "www.example.org", deadline: .zero)
    #expect(names.asked == ["www.example.org"])
  }

  /// An override that makes no sense fails its host, without a look-up, and no other host.
  @Test(arguments: [[], ["a.example"], ["10.0.0.1", ""], ["fe80::1%none"]]) func uselessOverrides(addresses: [String]) {
    var overrides = HostOverrides()
    overrides.set("a.example", to: .addresses(addresses))
    let resolver = resolver(overrides)
    let error = ask(resolver, "a.example").transportError
    if case .optionInvalid("hostOverrides", _)? = error {} else { Issue.record("\(String(describing: error))") }
    #expect(ask(resolver, "127.0.0.1").value == [.loopback(port: 80)])
    #expect(names.asked == [])
  }

  // MARK: - Lookups

  @Test func foundAndRemembered() {
    names.willAnswer("example.org", .found([Self.one, Self.two]))
    let resolver = resolver()
    #expect(ask(resolver, "example.org").value == [Self.one.with(port: 80), Self.two.with(port: 80)])
    #expect(ask(resolver, "EXAMPLE.org", port: 443).value == [Self.one.with(port: 443), Self.two.with(port: 443)])
    #expect(names.asked == ["example.org"])
    // The trailing dot tells the system not to use its search domains, which makes another question.
    _ = ask(resolver, "example.org.", deadline: .zero)
    world.advance(by: .seconds(30))
    _ = ask(resolver, "example.org")
    #expect(names.asked == ["example.org", "example.org.", "example.org"])
    #expect(world.leftovers == [])
  }

  @Test func unknownNamesAreRememberedBriefly() {
    names.willAnswer("a", .noSuchName(reason: "unknown"))
    names.willAnswer("b", .found([]))
    let resolver = resolver()
    for _ in 0..<2 {
      #expect(isRefused(ask(resolver, "a"), "unknown"))
      #expect(isRefused(ask(resolver, "b"), "the name has no address"))
    }
    #expect(names.asked == ["a", "b"])
    world.advance(by: .seconds(2))
    #expect(isRefused(ask(resolver, "a"), "unknown"))
    #expect(names.asked == ["a", "b", "a"])
  }

  @Test func failuresAreNotRemembered() {
    names.willAnswer("a", .failed(reason: "try again"))
    let resolver = resolver()
    #expect(isRefused(ask(resolver, "a"), "try again"))
    names.willAnswer("a", .found([Self.one]))
    #expect(ask(resolver, "a").value == [Self.one.with(port: 80)])
  }

  @Test func oneLookUpForAll() throws {
    let other = try ScriptedWorld()
    let resolver = resolver()
    let here = ask(resolver, "a", port: 1)
    let there = other.run { try await resolver.addresses(of: "A", port: 2, deadline: .never, on: other.loop) }
    #expect(names.asked == ["a"])
    let question = names.answer("a", .found([Self.one]))
    world.settle()
    // A second answer to a question is ignored.
    question?.answer(.found([Self.two]))
    other.settle()
    #expect(here.value == [Self.one.with(port: 1)])
    #expect(there.value == [Self.one.with(port: 2)])
    #expect(ask(resolver, "a").value == [Self.one.with(port: 80)])
    #expect(world.leftovers == [] && other.leftovers == [])
  }

  @Test func cancellation() {
    let resolver = resolver()
    let first = ask(resolver, "a")
    let second = ask(resolver, "a")
    first.cancel()
    world.settle()
    #expect(first.transportError == .cancelled)
    #expect(names.cancelled == [])
    second.cancel()
    world.settle()
    #expect(second.transportError == .cancelled)
    #expect(names.cancelled == ["a"])
    #expect(names.open == [])
    #expect(world.leftovers == [])
    // Nothing of the cancelled lookups is left.
    let third = ask(resolver, "a")
    names.answer("a", .found([Self.one]))
    world.settle()
    #expect(third.value == [Self.one.with(port: 80)])
  }

  @Test func theDeadline() {
    let running = ask(resolver(), "a", deadline: .seconds(3))
    world.advance(by: .milliseconds(2999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.resolving))
    #expect(names.cancelled == ["a"])
    #expect(world.leftovers == [])
  }

  /// The system's resolver continues after a cancellation, and a later caller gets its answer.
  @Test func aSourceThatCannotBeCancelled() {
    let names = ScriptedNames(isCancellable: false)
    let resolver = resolver(source: names)
    ask(resolver, "a").cancel()
    world.settle()
    #expect(names.cancelled == ["a"])
    let late = ask(resolver, "a")
    #expect(names.asked == ["a"])
    late.cancel()
    world.settle()
    names.answer("a", .found([Self.one]))
    #expect(ask(resolver, "a").value == [Self.one.with(port: 80)])
    #expect(names.asked == ["a"])
    #expect(world.leftovers == [])
  }

  // MARK: - Limits

  @Test func tooManyNames() {
    var limits = NameLimits()
    limits.lookUpsMax = 2
    limits.queuedNamesMax = 3
    let resolver = resolver(limits: limits)
    let waiting = (1...5).map { ask(resolver, "n\($0)x", deadline: .seconds(5)) }
    #expect(isRefused(ask(resolver, "n6x"), "too many look-ups are under way"))
    #expect(names.asked == ["n1x", "n2x"])
    world.advance(by: .seconds(5))
    #expect(waiting.map(\.transportError) == Array(repeating: .timedOut(.resolving), count: 5))
    // All slots are free again.
    names.willAnswer("n6x", .found([Self.one]))
    #expect(ask(resolver, "n6x").value == [Self.one.with(port: 80)])
    #expect(names.open == [])
    #expect(world.leftovers == [])
  }

  /// A source that answers a whole queue at once does not nest its calls.
  @Test func aLongQueueIsAnsweredAtOnce() {
    var limits = NameLimits()
    limits.lookUpsMax = 1
    let resolver = resolver(limits: limits)
    let first = ask(resolver, "first")
    let rest = (1...limits.queuedNamesMax).map { number -> Running<[SocketAddress]> in
      names.willAnswer("n\(number)x", .found([Self.one]))
      return world.start { [world] in
        try await resolver.addresses(of: "n\(number)x", port: 80, deadline: .never, on: world.loop)
      }
    }
    world.settle()
    names.answer("first", .found([Self.two]))
    world.settle()
    #expect(first.isOver)
    #expect(rest.allSatisfy { $0.value == [Self.one.with(port: 80)] })
    #expect(names.callsNestedMax == 1)
    #expect(world.leftovers == [])
  }

  // MARK: - Connections

  @Test func theTimeForTheNameAlone() {
    let resolver = resolver()
    let running = world.start { [world] in
      var timeouts = Timeouts()
      timeouts.resolve = .seconds(2)
      _ = try await Connection.open(
        host: "example.org", port: 80, resolver: resolver, on: world.loop,
        deadline: world.loop.now.advanced(by: .seconds(60)), timeouts: timeouts)
    }
    world.settle()
    world.advance(by: .milliseconds(1_999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.resolving, limit: .resolve))
    #expect(world.leftovers == [])
  }

  @Test func aConnectionByName() {
    names.willAnswer("example.org", .found([Self.two, Self.one]))
    let resolver = resolver()
    world.kernel.willConnect(.later(.connectionRefused), .later(nil))
    let running = world.run { [world] in
      let connection = try await Connection.open(host: "example.org", port: 8080, resolver: resolver, on: world.loop)
      defer { connection.close() }
      return connection.address
    }
    #expect(running.value == .some(Self.one.with(port: 8080)))
    #expect(world.leftovers == [])
  }

  @Test func aNameThatIsNotAnswered() {
    let resolver = resolver()
    let running = world.run { [world] in
      let deadline = world.loop.now.advanced(by: .seconds(1))
      try await Connection.open(host: "a", port: 80, resolver: resolver, on: world.loop, deadline: deadline).close()
    }
    world.advance(by: .seconds(1))
    #expect(running.transportError == .timedOut(.resolving))
    #expect(world.kernel.counts.sockets == 0)
    #expect(world.leftovers == [])
  }

  /// Cancellation at each kernel call, before and after the answer.
  @Test func cancellationAtEveryStep() throws {
    var number = 0
    var calls = 1
    while number < calls {
      number += 1
      let (world, names) = (try ScriptedWorld(), ScriptedNames())
      let resolver = Resolver(source: names, kernel: world.kernel)
      let running = world.start {
        try await Connection.open(host: "a", port: 80, resolver: resolver, on: world.loop).close()
      }
      world.kernel.beforeCalls { [number] call in if call == number { running.cancel() } }
      world.settle()
      let isAsked = names.open == ["a"]
      names.answer("a", .found([Self.one]))
      world.settle()
      #expect(running.isOver, "call \(number)")
      #expect(running.error == nil || running.transportError == .cancelled, "call \(number)")
      #expect(isAsked || names.cancelled == ["a"], "call \(number)")
      #expect(world.leftovers == [], "call \(number)")
      calls = max(calls, world.kernel.calls)
    }
    #expect(number > 5)
  }

  @Test func callsOnAnotherThread() async throws {
    let resolver = resolver()
    await #expect(throws: TransportError.localMisuse(.notOnLoop)) {
      try await resolver.addresses(of: "localhost", port: 80, deadline: .never, on: world.loop)
    }
  }
}
