import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// The timeout of each phase, on a clock that only the test advances. Each error names the limit.
@Suite struct TimeoutTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  static func timeouts(_ change: (inout Timeouts) -> Void) -> Timeouts {
    var timeouts = Timeouts()
    change(&timeouts)
    return timeouts
  }

  static let almost = Duration.milliseconds(1499)
  static let short = Duration.milliseconds(1500)

  func expectTimeOut<T>(_ running: Running<T>, _ error: TransportError) {
    #expect(!running.isOver)
    world.advance(by: Self.almost)
    #expect(!running.isOver)
    world.advance(by: Self.short - Self.almost)
    #expect(running.transportError == error)
    #expect(world.leftovers == [])
  }

  // MARK: - Opening

  @Test func connect() {
    kernel.willConnect(.never)
    let running = world.run { [world] in
      _ = try await Connection.open(
        to: [address], as: "a.example", security: nil, on: world.loop,
        deadline: world.loop.now.advanced(by: .seconds(5)),
        timeouts: Self.timeouts { $0.connect = Self.short })
    }
    expectTimeOut(running, .timedOut(.connecting, limit: .connect))
  }

  @Test func totalOfOpening() {
    kernel.willConnect(.never)
    let running = world.run { [world] in
      _ = try await Connection.open(
        to: [address], as: "a.example", security: nil, on: world.loop,
        timeouts: Self.timeouts {
          $0.connect = .seconds(5)
          $0.total = Self.short
        })
    }
    expectTimeOut(running, .timedOut(.connecting))
  }

  @Test func secure() throws {
    let root = try Certificate.one(try TestCA().certificate)
    var configuration = TLSConfiguration()
    configuration.roots = .only([root])
    let security = Security(try TLSContext(configuration))
    let running = world.run { [world] in
      _ = try await Connection.open(
        to: [address], as: "a.example", security: security, on: world.loop,
        timeouts: Self.timeouts { $0.secure = Self.short })
    }
    #expect(!peer.received.isEmpty)
    expectTimeOut(running, .timedOut(.securing, limit: .secure))
  }

  // MARK: - An exchange

  @Test func send() {
    peer.setSendRoom(10)
    let running = world.exchange(
      request("PUT", body: 1000), .bytes(pattern(1000)), timeouts: Self.timeouts { $0.send = Self.short })
    world.settle()
    // Progress restarts the timeout.
    for _ in 0..<5 {
      world.advance(by: Self.almost)
      #expect(!running.isOver)
      peer.setSendRoom(1)
      world.settle()
    }
    expectTimeOut(running, .timedOut(.sending, limit: .send))
  }

  /// A slow producer does not use up the server's time.
  @Test func aSlowProducerIsNotTheServersFault() {
    let mayGoOn = Event()
    let running = world.exchange(
      chunkedRequest(),
      .produced(length: nil) { writer in
        try await writer.write([1])
        try await mayGoOn.wait()
        try await writer.write([2])
      }, timeouts: Self.timeouts { $0.send = Self.short })
    world.tick(20)
    kernel.advance(by: .seconds(100))
    world.tick(20)
    #expect(!running.isOver)
    peer.setSendRoom(1)
    mayGoOn.fire()
    world.settle()
    expectTimeOut(running, .timedOut(.sending, limit: .send))
  }

  @Test(arguments: [0, 500]) func firstByte(body: Int) {
    peer.setSendRoom(100)
    let running = world.exchange(
      request("PUT", body: body), .bytes(pattern(body)),
      timeouts: Self.timeouts {
        $0.firstByte = Self.short
        $0.idle = .seconds(100)
      })
    world.settle()
    if body > 0 {
      // While the request is being sent, this limit does not count.
      world.advance(by: .seconds(50))
      #expect(!running.isOver)
      peer.setSendRoom(.max)
      world.settle()
    }
    expectTimeOut(running, .timedOut(.awaitingHead, limit: .firstByte))
  }

  /// When sending has stopped for good, the server still has its whole time for a response, and no more.
  @Test func firstByteOfAServerThatStoppedReading() {
    peer.setSendRoom(100)
    let running = world.exchange(
      request("PUT", body: 500), .bytes(pattern(500)), timeouts: Self.timeouts { $0.firstByte = Self.short })
    world.settle()
    peer.willFailToSend(.brokenPipe)
    peer.setSendRoom(1)
    world.settle()
    expectTimeOut(running, .timedOut(.sending, limit: .firstByte))
  }

  @Test func idleInTheHead() {
    let running = world.exchange(
      request(), .none,
      timeouts: Self.timeouts {
        $0.firstByte = .seconds(50)
        $0.idle = Self.short
      })
    world.settle()
    world.advance(by: .seconds(49))
    for byte in "HTTP/1.1 2".utf8 {
      peer.send([byte])
      world.settle()
      world.advance(by: Self.almost)
    }
    peer.send([UInt8(ascii: "0")])
    world.settle()
    expectTimeOut(running, .timedOut(.awaitingHead, limit: .idle))
  }

  @Test(arguments: [true, false]) func idleInTheBody(isFile: Bool) {
    let file = kernel.makeFile()
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(
        request(), body: .none, timeouts: Self.timeouts { $0.idle = Self.short })
      if isFile { return try await exchange.receiveBody(into: file.openFile) }
      return try await exchange.collectBody(bytesMax: 1000).count
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n")
    world.settle()
    for _ in 0..<20 {
      world.advance(by: Self.almost)
      #expect(!running.isOver)
      peer.send("x")
      world.settle()
    }
    expectTimeOut(running, .timedOut(.receivingBody, limit: .idle))
  }

  /// A response that trickles ends, although each of its bytes comes within the idle time.
  @Test(arguments: [true, false]) func lowestRateOfAResponse(isFile: Bool) {
    let file = kernel.makeFile()
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let timeouts = Self.timeouts { $0.lowestRate = .init(bytes: 1000, over: Self.short) }
      let exchange = try await connection.send(request(), body: .none, timeouts: timeouts)
      if isFile { return try await exchange.receiveBody(into: file.openFile) }
      return try await exchange.collectBody(bytesMax: 10_000).count
    }
    world.settle()
    // The wait for the head does not count.
    world.advance(by: .seconds(100))
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    world.settle()
    for _ in 0..<3 {
      world.advance(by: Self.almost)
      #expect(!running.isOver)
      peer.send(pattern(1000))
      world.settle()
    }
    for _ in 0..<2 {
      world.advance(by: .milliseconds(500))
      #expect(!running.isOver)
      peer.send("x")
      world.settle()
    }
    world.advance(by: .milliseconds(500))
    #expect(running.transportError == .timedOut(.receivingBody, limit: .lowestRate))
    #expect(world.leftovers == [])
  }

  @Test func lowestRateOfARequest() {
    peer.setSendRoom(1000)
    let running = world.exchange(
      request("PUT", body: 5000), .bytes(pattern(5000)),
      timeouts: Self.timeouts { $0.lowestRate = .init(bytes: 1000, over: Self.short) })
    world.settle()
    world.advance(by: Self.almost)
    #expect(!running.isOver)
    peer.setSendRoom(999)
    world.settle()
    world.advance(by: Self.short - Self.almost)
    #expect(running.transportError == .timedOut(.sending, limit: .lowestRate))
    #expect(world.leftovers == [])
  }

  @Test func limitsThatCannotBeUsed() {
    let useless: [(String, Timeouts)] = [
      ("timeouts.resolve", Self.timeouts { $0.resolve = .zero }),
      ("timeouts.connect", Self.timeouts { $0.connect = .seconds(-1) }),
      ("timeouts.lowestRate", Self.timeouts { $0.lowestRate = .init(bytes: 0, over: .seconds(1)) }),
      ("timeouts.lowestRate", Self.timeouts { $0.lowestRate = .init(bytes: 1, over: .zero) }),
    ]
    for (name, timeouts) in useless {
      var options = Pool.Options()
      options.timeouts = timeouts
      do throws(TransportError) {
        try options.check()
        Issue.record("\(name) is accepted")
      } catch {
        if case .optionInvalid(name, _) = error {} else { Issue.record("\(error)") }
      }
    }
    #expect(throws: Never.self) { try Pool.Options().check() }
  }

  /// A slow caller does not use up the server's time.
  @Test func aSlowCaller() {
    let mayGoOn = Event()
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(
        request(), body: .none, timeouts: Self.timeouts { $0.idle = Self.short })
      _ = try await exchange.receiveData { _ in }
      try await mayGoOn.wait()
      return try await exchange.collectBody(bytesMax: 1000).count
    }
    world.tick(10)
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
    world.tick(10)
    kernel.advance(by: .seconds(100))
    world.tick(10)
    mayGoOn.fire()
    world.settle()
    expectTimeOut(running, .timedOut(.receivingBody, limit: .idle))
  }

  @Test func totalComesFirst() {
    let running = world.exchange(
      request(), .none,
      timeouts: Self.timeouts {
        $0.total = Self.short
        $0.firstByte = Self.short + .nanoseconds(1)
      })
    world.settle()
    expectTimeOut(running, .timedOut(.awaitingHead))
  }

  /// Time that has passed in one exchange does not count in the next one, and an exchange without timeouts has none.
  @Test func oneExchangeAfterAnother() {
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      for limit in [Duration?.some(.seconds(1)), nil, .some(.seconds(3))] {
        let timeouts = Self.timeouts { $0.firstByte = limit }
        _ = try await connection.send(request(), body: .none, timeouts: timeouts).collectBody(bytesMax: 10)
        _ = try await connection.send(request()).collectBody(bytesMax: 10)
      }
    }
    world.settle()
    for wait in [
      Duration.milliseconds(999), .seconds(100), .seconds(100), .seconds(100), .milliseconds(2999), .seconds(100),
    ] {
      world.advance(by: wait)
      #expect(!running.isOver)
      peer.send(helloResponse)
      world.settle()
    }
    #expect(running.isOver && running.error == nil)
    #expect(world.leftovers == [])
  }
}

/// Rate limits, on a clock that only the test advances.
@Suite struct RateTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  enum Upload: CaseIterable { case bytes, file, copiedFile, producer }

  @Test(arguments: Upload.allCases) func sending(kind: Upload) {
    let count = 50_000
    let file = kernel.makeFile(pattern(count))
    if kind == .copiedFile { file.refuseSplices() }
    let body: RequestBody =
      switch kind {
      case .bytes: .bytes(pattern(count))
      case .file, .copiedFile: .file(file.openFile, offset: 0, length: count)
      case .producer:
        .produced(length: count) { writer in for byte in pattern(count) { try await writer.write([byte]) } }
      }
    var timeouts = Timeouts()
    // A pause for the rate limit does not count as the server's standstill.
    timeouts.send = .milliseconds(50)
    let (limits, head) = (timeouts, request("PUT", body: count))
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      connection.limit(sendingTo: 10_000)
      return try await connection.send(head, body: body, timeouts: limits).collectBody(bytesMax: 10)
    }
    world.settle()
    var elapsed = 0
    while peer.received.count < head.bytes.count + count, elapsed < 10_000, !running.isOver {
      #expect(peer.received.count <= 1000 + elapsed * 10)
      #expect(peer.received.count >= elapsed * 10 - 1000)
      world.advance(by: .milliseconds(20))
      elapsed += 20
    }
    #expect(peer.received == head.bytes + pattern(count))
    #expect(elapsed >= (count - 1000) / 10 - 20)
    // The bucket refills 40 times per second; the bound of 500 sends in 5 s allows 100.
    #expect(kernel.counts.sends + kernel.counts.sentFiles < 2 * 5000 / 20)
    peer.send(helloResponse)
    world.settle()
    #expect(running.value == Array("hello".utf8))
    #expect(world.leftovers == [])
  }

  @Test(arguments: [true, false]) func receiving(isFile: Bool) {
    let count = 200_000
    let file = kernel.makeFile()
    let received = Shared(0)
    var timeouts = Timeouts()
    timeouts.idle = .milliseconds(50)
    let limits = timeouts
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      connection.limit(receivingTo: 20_000)
      let exchange = try await connection.send(request(), body: .none, timeouts: limits)
      if isFile {
        _ = try await exchange.receiveBody(into: file.openFile) { received.value = $0 }
      } else {
        while try await exchange.receiveData({ received.value += $0.count }) {}
      }
    }
    peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n".utf8) + pattern(count))
    world.settle()
    var elapsed = 0
    while !running.isOver, elapsed < 20_000 {
      // One receive may exceed the rate, and later receives make up for that.
      #expect(received.value <= elapsed * 20 + 256 * 1024)
      world.advance(by: .milliseconds(20))
      elapsed += 20
    }
    #expect(received.value == count)
    #expect(elapsed * 20 >= count - 140_000)
    #expect(running.isOver && running.error == nil)
    #expect(world.leftovers == [])
  }

  /// Without a limit, no timer wakes the loop.
  @Test func noLimitNoWakeUps() {
    let running = world.exchange(request(), .none)
    world.settle()
    let waits = kernel.counts.waits
    world.advance(by: .seconds(1000))
    #expect(kernel.counts.waits == waits + 1)
    #expect(!running.isOver)
    running.cancel()
    peer.close()
    world.settle()
    #expect(world.leftovers == [])
  }
}
