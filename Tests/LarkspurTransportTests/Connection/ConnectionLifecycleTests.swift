import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// A connection between exchanges and after them, and callers that break its rules.
@Suite struct ConnectionLifecycleTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }
  let mayProceed = Event()

  init() throws {
    world = try ScriptedWorld()
  }

  static let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
  static let whole = Outcome(status: 200, body: "hello")

  /// Performs two exchanges. Between them the caller waits until the test resumes it.
  func twoExchanges(afterFirst: @escaping @Sendable (Connection) -> Void = { _ in }) -> Running<Outcome> {
    let mayProceed = mayProceed
    return world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let first = try await fetch(request("GET", "/1"), over: connection)
      #expect(first == Self.whole)
      afterFirst(connection)
      try await mayProceed.wait()
      return try await fetch(request("GET", "/2"), over: connection)
    }
  }

  func firstExchange() {
    world.tick(10)
    peer.send(Self.response)
    world.tick(10)
  }

  func proceed() {
    mayProceed.fire()
    world.settle()
  }

  @Test(arguments: [ScriptedKernel.Arrival.end, .reset, .bytes([0]), .bytes(Array(response.utf8))])
  func anIdleConnectionThatEnds(arrival: ScriptedKernel.Arrival) {
    let running = twoExchanges()
    firstExchange()
    peer.arrive([arrival])
    world.tick(10)
    proceed()
    #expect(running.transportError == .connectionClosed)
    #expect(!peer.receivedText.contains("/2"))
    #expect(world.leftovers == [])
  }

  /// Buffers that a connection releases while it is idle, and takes again, hold nothing of earlier responses.
  @Test func aResponseAfterAForgottenOne() {
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      var counts: [Int] = []
      for number in 1...4 {
        let exchange = try await connection.send(request("GET", "/\(number)"))
        counts.append(exchange.head.fields.count)
        _ = try await exchange.collectBody(bytesMax: 100)
        // One response and one table, which the next response is read into, are kept.
        if number == 2 { connection.forgetResponse() }
      }
      return counts
    }
    for _ in 1...4 {
      world.settle()
      peer.send(Self.response)
    }
    world.settle()
    #expect(running.value == [1, 1, 1, 1])
    #expect(world.leftovers == [])
  }

  /// A stray response that arrived after the check for an end, and before a reset, does not answer the second request,
  /// of which nothing has been sent.
  @Test(arguments: [Errno.brokenPipe, .connectionReset], [0, 20, 100_000])
  func aStrayAnswerInFrontOfAReset(error: Errno, count: Int) {
    let body = [UInt8](repeating: 120, count: count)
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      _ = try await fetch(request("GET", "/1"), over: connection)
      return try await fetch(request("POST", "/2", body: body.count), body: body, over: connection)
    }
    world.tick(10)
    peer.willFailToSend(error)
    peer.arrive([.bytes(Array(Self.response.utf8)), .bytes(Array(Self.response.utf8)), .end])
    world.settle()
    #expect(running.transportError == .connectionClosed)
    #expect(world.leftovers == [])
  }

  /// An overloaded server may respond as soon as a connection is open, and close it.
  @Test(arguments: [false, true]) func aServerThatAnswersAtOnce(closes: Bool) {
    let mayProceed = mayProceed
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      try await mayProceed.wait()
      return try await fetch(request("GET", "/1"), over: connection)
    }
    world.tick(10)
    peer.arrive([.bytes(Array("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy".utf8))] + (closes ? [.end] : []))
    world.tick(10)
    proceed()
    #expect(running.value == Outcome(status: 503, body: "busy"))
    #expect(world.leftovers == [])
  }

  /// A body of another length than the head announces is refused: its rest would be another request.
  @Test func aBodyOfAnotherLength() {
    let smuggled = Array("GET /x HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
    for head in [request(), request("POST", body: smuggled.count - 1), request("POST", body: smuggled.count + 1)] {
      let running = world.start { [world] in
        let connection = try await Connection.open(to: [address], on: world.loop)
        return try await fetch(head, body: smuggled, over: connection)
      }
      world.settle()
      #expect(running.transportError == .localMisuse(.bodyLengthWrong))
      #expect(world.leftovers == [])
    }
  }

  /// After a request with `Connection: close`, no other request is sent, whatever the server answers.
  @Test func ourOwnClose() {
    let running = world.start { [world] in
      var writer = try RequestWriter(method: "GET", target: "/1", host: "a.example")
      try writer.field("Connection", "TE, Close")
      let connection = try await Connection.open(to: [address], on: world.loop)
      let outcome = try await fetch(writer.finish(), over: connection)
      #expect(!connection.isIdle)
      return outcome
    }
    world.settle()
    peer.send(Self.response)
    world.settle()
    #expect(running.value == Self.whole)
  }

  @Test func trailersAreThereAtTheEnd() {
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      #expect(exchange.trailer("x_sum") == nil)
      try await exchange.discardBody()
      return exchange.trailer("x_sum")
    }
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX_Sum: 4\r\n  2\r\n\r\n")
    world.settle()
    #expect(running.value == "4 2")
  }

  /// The end of one exchange does not remove the cancellation of its task.
  @Test func aLateCancellationOfAnExchangeBesideThatOfItsTask() {
    let mayProceed = mayProceed
    let late = Shared<Canceller?>(nil)
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      return try await connection.cancelledWithTask {
        let exchange = try await connection.send(request("GET", "/1"))
        late.value = exchange.canceller
        _ = try await exchange.collectBody(bytesMax: 100)
        try await mayProceed.wait()
        return try await fetch(request("GET", "/2"), over: connection)
      }
    }
    firstExchange()
    running.cancel()
    world.tick(10)
    late.value?.cancel()
    world.tick(10)
    proceed()
    #expect(running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }

  @Test func spuriousReadinessOfAnIdleConnection() {
    let running = twoExchanges()
    firstExchange()
    let token = peer.token
    kernel.report(
      PollerEvent(
        slot: token?.slot ?? 0, registration: token?.registration ?? 0, isReadable: true, isWritable: true,
        isHungUp: false))
    world.tick(10)
    mayProceed.fire()
    world.settle()
    peer.send(Self.response)
    world.settle()
    #expect(running.value == Self.whole)
  }

  /// Bytes after a complete response, in one segment with it, never answer the next request.
  @Test(arguments: [
    "x", "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", "HTTP/1.1 100 Continue\r\n\r\n",
  ])
  func strayBytes(stray: String) {
    let wasIdle = Shared<Bool?>(nil)
    let running = twoExchanges { wasIdle.value = $0.isIdle }
    world.tick(10)
    peer.send(Self.response + stray)
    world.tick(10)
    proceed()
    #expect(wasIdle.value == false)
    #expect(running.transportError == .connectionClosed)
    #expect(!peer.receivedText.contains("/2"))
    #expect(world.leftovers == [])
  }

  @Test(arguments: [
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  ])
  func responsesThatEndTheConnection(response: String) {
    let running = twoExchanges()
    world.tick(10)
    peer.send(response)
    world.tick(10)
    #expect(!peer.isOpen)
    proceed()
    #expect(running.transportError == .connectionClosed)
    #expect(world.leftovers == [])
  }

  @Test func aHeadAfterAHead() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let first = try await connection.send(request("HEAD"))
      let end = try await first.receiveData { _ in }
      #expect(!end)
      return try await fetch(request(), over: connection)
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    world.settle()
    peer.send(Self.response)
    world.settle()
    #expect(running.value == Self.whole)
  }

  // MARK: - Callers

  @Test func closingInsideAPiece() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      var pieces = 0
      while try await exchange.receiveData({ _ in
        pieces += 1
        connection.close()
        connection.close()
      }) {}
      return pieces
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }

  @Test func closingInsideTheLastPiece() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      while try await exchange.receiveData({ _ in connection.close() }) {}
    }
    peer.send(Self.response)
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }

  /// An observer may close the connection at any event, and the exchange ends once.
  @Test(arguments: 0..<8) func closingInsideAnObserver(at number: Int) {
    let connection = Shared<Connection?>(nil)
    let events = Shared(0)
    let ends = Shared(0)
    let running = world.run { [world] in
      defer { connection.value = nil }
      let opened = try await Connection.open(to: [address], on: world.loop) { event, _ in
        switch event {
        case .completed, .failed, .handedOver: ends.value += 1
        default: break
        }
        guard let connection = connection.value else { return }
        events.value += 1
        if events.value == number + 1 { connection.close() }
      }
      connection.value = opened
      _ = try await fetch(request(), over: opened)
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
    peer.send("hello")
    world.settle()
    #expect(running.isOver)
    #expect(running.error == nil || running.transportError == .cancelled)
    #expect(ends.value == 1)
    #expect(world.leftovers == [])
  }

  @Test func aSecondRequestWhileOneRuns() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      do {
        _ = try await connection.send(request("GET", "/2"))
        Issue.record("a second exchange began")
      } catch {
        #expect(error as? TransportError == .localMisuse(.exchangeRunning))
      }
      return try await exchange.collectBody(bytesMax: 100)
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    peer.send("lo")
    world.settle()
    #expect(running.value == Array("hello".utf8))
    #expect(!peer.receivedText.contains("/2"))
  }

  /// Two tasks that wait on one connection are an error of the caller, which must not make either wait for ever.
  @Test func twoTasksWaitAtOnce() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = Shared(try await connection.send(request()))
      let other = world.start { try await exchange.value.collectBody(bytesMax: 100).count }
      let count = try await exchange.value.collectBody(bytesMax: 100).count
      return (count, other)
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    world.tick(10)
    peer.send("hello")
    world.tick(10)
    #expect(running.isOver)
    #expect(running.value?.0 == 5)
    #expect(running.value?.1.transportError == .localMisuse(.exchangeRunning))
    #expect(world.leftovers == [])
  }

  @Test func anExchangeThatIsOver() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let old = try await connection.send(request())
      try await old.discardBody()
      // The end is returned again if the caller asks again.
      let again = try await old.receiveData { _ in }
      #expect(!again)
      let new = try await connection.send(request())
      #expect(old.status == 0)
      #expect(old.headBytes.isEmpty)
      #expect(old.canceller == nil)
      do {
        _ = try await old.receiveData { _ in }
        Issue.record("the old exchange read the new one's body")
      } catch {
        #expect(error as? TransportError == .localMisuse(.exchangeOver))
      }
      return try await new.collectBody(bytesMax: 100).count
    }
    peer.send(Self.response)
    world.settle()
    peer.send(Self.response)
    world.settle()
    #expect(running.value == 5)
    #expect(world.leftovers == [])
  }

  /// An exchange that its caller abandons half-way keeps the connection busy; releasing the connection closes it.
  @Test func anAbandonedExchange() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      _ = try await connection.send(request())
      #expect(!connection.isIdle)
      do {
        _ = try await connection.send(request("GET", "/2"))
      } catch {
        #expect(error as? TransportError == .localMisuse(.exchangeRunning))
      }
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
    world.settle()
    #expect(running.isOver)
    #expect(world.leftovers == [])
  }

  @Test func aBodyBeyondTheAllowance() {
    for count in [4, 5] {
      let world = try? ScriptedWorld()
      guard let world else { return }
      let running = world.run {
        let connection = try await Connection.open(to: [address], on: world.loop)
        return try await connection.send(request()).collectBody(bytesMax: count).count
      }
      world.kernel.peer().send(Self.response)
      world.settle()
      #expect(running.value == (count == 5 ? 5 : nil))
      #expect(running.transportError == (count == 5 ? nil : .localMisuse(.bodyTooLarge)))
      #expect(world.leftovers == [])
    }
  }

  /// Errors of a later exchange name its own phase, not that of the exchange before.
  @Test func thePhasesOfALaterExchange() {
    for (arrivals, expected) in [
      ([ScriptedKernel.Arrival.reset], TransportError.Phase.awaitingHead),
      ([.bytes(Array("HTTP/1.1 200 OK\r\nX".utf8)), .reset], .awaitingHead),
      ([.bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello".utf8)), .reset], .receivingBody),
    ] {
      guard let world = try? ScriptedWorld() else { return }
      let running = world.run {
        let connection = try await Connection.open(to: [address], on: world.loop)
        for _ in 0..<2 { _ = try await fetch(request(), over: connection) }
        return try await fetch(request(), over: connection)
      }
      let peer = world.kernel.peer()
      for _ in 0..<2 {
        peer.send(Self.response)
        world.settle()
      }
      peer.arrive(arrivals)
      world.settle()
      #expect(running.transportError == .connectionLost(expected, .connectionReset))
      #expect(world.leftovers == [])
    }
  }

  // MARK: - Upgrade

  @Test func anUpgrade() {
    let events = Shared<[String]>([])
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop) { event, _ in
        switch event {
        case .handedOver: events.value.append("handedOver")
        case .completed: events.value.append("completed")
        case .failed: events.value.append("failed")
        case .closed(let reason): events.value.append("closed \(reason)")
        default: break
        }
      }
      let exchange = try await connection.send(request(upgrade: true))
      #expect(exchange.status == 101)
      // HTTP is over: there is no body, and no other request can be made.
      let more = try await exchange.receiveData { _ in }
      #expect(!more)
      #expect(!connection.isIdle)
      do {
        _ = try await connection.send(request())
        Issue.record("a request was sent into another protocol")
      } catch {
        #expect(error as? TransportError == .localMisuse(.exchangeRunning))
      }
      var tunnel = connection.takeTunnel()
      #expect(tunnel?.received == [0x81, 0])
      let again = connection.takeTunnel()
      #expect(again?.received == nil)
      // The channel belongs to its new owner.
      connection.close()
      #expect(world.kernel.openSockets == 1)
      // Releasing the channel closes it.
      tunnel = nil
      #expect(world.kernel.openSockets == 0)
    }
    let head = Array("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n".utf8)
    peer.send(head + [0x81, 0])
    world.settle()
    #expect(running.isOver && running.error == nil)
    #expect(events.value == ["handedOver", "closed unneeded"])
    #expect(world.leftovers == [])
  }

  @Test func anUnofferedUpgrade() {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      return try await fetch(request(), over: connection)
    }
    peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    world.settle()
    #expect(running.transportError == .badResponse(.upgradeUnsolicited))
    #expect(world.leftovers == [])
  }

  // MARK: - The loop

  /// The last reference is released on another thread than the loop's.
  @Test func lettingGoOnAnotherThread() throws {
    let connection = Shared<Connection?>(nil)
    let running = world.run { [world] in
      let opened = try await Connection.open(to: [address], on: world.loop)
      _ = try await opened.send(request())
      connection.value = opened
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
    world.settle()
    #expect(running.isOver)
    let thread = try SystemThread(name: "another") { connection.value = nil }
    thread.join()
    world.settle()
    #expect(world.leftovers == [])
  }

  @Test func everythingGoesWithTheLoop() throws {
    var world: ScriptedWorld? = try ScriptedWorld()
    let kernel = try #require(world?.kernel)
    weak let loop = world?.loop
    do {
      let running = world?.run { [loop = try #require(world?.loop)] in
        let connection = try await Connection.open(to: [address], on: loop)
        return try await fetch(request(), over: connection)
      }
      kernel.peer().send(Self.response)
      world?.settle()
      #expect(running?.value == Self.whole)
    }
    world = nil
    #expect(loop == nil)
    #expect(kernel.openDescriptors == 0)
    #expect(kernel.offences == [])
  }
}
