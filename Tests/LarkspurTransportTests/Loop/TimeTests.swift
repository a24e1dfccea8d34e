import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Deadlines on a clock that only the test advances; stale events; fairness.
@Suite struct TimeTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  static let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

  /// Runs exchanges with one deadline each, counted from the exchange's beginning.
  func exchanges(_ deadlines: [Duration?], body: Int = 0) -> Running<Int> {
    world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      var count = 0
      for deadline in deadlines {
        let until = deadline.map { world.loop.now.advanced(by: $0) } ?? .never
        let bytes = Array(repeating: UInt8(0), count: body)
        let head = body > 0 ? request("POST", body: body) : request()
        _ = try await fetch(head, body: bytes, over: connection, deadline: until)
        count += 1
      }
      return count
    }
  }

  @Test func whileSending() {
    peer.setSendRoom(10)
    let running = exchanges([.seconds(5)], body: 1000)
    world.advance(by: .milliseconds(4999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.sending))
    #expect(world.leftovers == [])
  }

  /// CVE-2021-3737: an interim response does not extend the deadline.
  @Test func whileWaitingForTheHead() {
    let running = exchanges([.seconds(5)])
    peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    world.advance(by: .milliseconds(4999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.awaitingHead))
    #expect(world.leftovers == [])
  }

  @Test func whileReceivingTheBody() {
    let running = exchanges([.seconds(5)])
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell")
    world.advance(by: .milliseconds(4999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.receivingBody))
    #expect(world.leftovers == [])
  }

  /// A server that keeps sending a little does not postpone the deadline.
  @Test func aBodyThatDripsPastTheDeadline() {
    let running = exchanges([.seconds(5)])
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in 0..<10 where !running.isOver {
      peer.send("x")
      world.advance(by: .seconds(1))
    }
    #expect(running.transportError == .timedOut(.receivingBody))
    #expect(world.leftovers == [])
  }

  /// Exchanges on one connection with sooner, later and no deadlines: each deadline applies to its own exchange only.
  @Test func deadlinesOfOneExchangeAfterAnother() {
    let deadlines: [Duration?] = [
      .seconds(100), .seconds(10), nil, .seconds(50), .seconds(7), .seconds(7), .seconds(1000), nil, .seconds(3),
    ]
    let running = exchanges(deadlines)
    for deadline in deadlines.dropLast() {
      // Just before the exchange's deadline, or long after all earlier ones.
      world.advance(by: deadline.map { $0 - .nanoseconds(1) } ?? .seconds(5000))
      #expect(!running.isOver)
      peer.send(Self.response)
      world.settle()
    }
    world.advance(by: .seconds(3) - .nanoseconds(1))
    #expect(!running.isOver)
    world.advance(by: .nanoseconds(1))
    #expect(running.transportError == .timedOut(.awaitingHead))
    #expect(world.leftovers == [])
  }

  @Test func theLoopSleepsUntilTheDeadline() {
    let running = exchanges([.milliseconds(1500)])
    let waits = kernel.counts.waits
    world.settle()
    #expect(!running.isOver)
    // At rest, one wait is enough: the loop does not spin while a deadline is far.
    #expect(kernel.counts.waits == waits + 1)
  }

  /// Deadlines that move on set no timer: the timer of an earlier deadline, which was met, serves the next one, too.
  @Test func deadlinesThatMoveOnSetNoTimer() {
    let running = exchanges(Array(repeating: .seconds(60), count: 10))
    let timerChanges = kernel.counts.timerChanges
    for _ in 0..<5 {
      world.advance(by: .seconds(10))
      peer.send(Self.response)
      world.settle()
    }
    #expect(kernel.counts.timerChanges == timerChanges)
    // The timer expires for a deadline that is long over, and is set for the present one.
    world.advance(by: .seconds(10))
    #expect(kernel.counts.timerChanges == timerChanges + 1)
    #expect(kernel.waitMilliseconds == 50_000)
    world.advance(by: .seconds(50) - .nanoseconds(1))
    #expect(!running.isOver)
    world.advance(by: .nanoseconds(1))
    #expect(running.transportError == .timedOut(.awaitingHead))
    #expect(world.leftovers == [])
  }

  @Test func aSoonerDeadlineSetsTheTimer() {
    let running = exchanges([.seconds(60), .seconds(5)])
    let timerChanges = kernel.counts.timerChanges
    peer.send(Self.response)
    world.settle()
    #expect(kernel.counts.timerChanges == timerChanges + 1)
    #expect(kernel.waitMilliseconds == 5_000)
    world.advance(by: .seconds(5))
    #expect(running.transportError == .timedOut(.awaitingHead))
    #expect(world.leftovers == [])
  }

  // MARK: - Stale events

  /// An event of a closed socket, whose slot another one has by now, is ignored.
  @Test func aStaleToken() {
    let old = Shared<(slot: UInt32, registration: UInt32)?>(nil)
    let running = world.run { [world] in
      let first = try await Connection.open(to: [address], on: world.loop)
      old.value = world.kernel.peer(0).token
      first.close()
      let second = try await Connection.open(to: [address], on: world.loop)
      return try await fetch(request(), over: second)
    }
    let now = kernel.peer(1).token
    #expect(now?.slot == old.value?.slot)
    #expect(now?.registration != old.value?.registration)
    let receives = kernel.counts.receives
    kernel.report(
      PollerEvent(
        slot: old.value?.slot ?? 0, registration: old.value?.registration ?? 0, isReadable: true, isWritable: true,
        isHungUp: true),
      // A slot that never existed.
      PollerEvent(slot: 12345, registration: 1, isReadable: true, isWritable: true, isHungUp: true))
    world.settle()
    #expect(kernel.counts.receives == receives)
    #expect(!running.isOver)
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  /// A deadline of a closed connection does not affect the connection that has its slot by now.
  @Test func aStaleDeadline() {
    let running = world.run { [world] in
      let first = try await Connection.open(
        to: [address], on: world.loop, deadline: world.loop.now.advanced(by: .seconds(1)))
      first.close()
      let second = try await Connection.open(to: [address], on: world.loop)
      return try await fetch(request(), over: second)
    }
    world.advance(by: .seconds(10))
    #expect(!running.isOver)
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
  }

  // MARK: - Fairness

  /// With two servers that send without end, neither connection is served twice while the other one waits.
  @Test func busyChannelsAlternate() {
    let order = Shared<[Int]>([])
    let count = 4 << 20
    for index in 0..<2 {
      let peer = kernel.peer(index)
      // All bytes are there when the client first reads.
      peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n".utf8) + Array(repeating: 0, count: count))
    }
    let tasks = (0..<2).map { index in
      world.start { [world] in
        let connection = try await Connection.open(to: [address], on: world.loop)
        let exchange = try await connection.send(request())
        var received = 0
        while try await exchange.receiveData({
          received += $0.count
          if order.value.last != index { order.value.append(index) }
        }) {}
        return received
      }
    }
    world.settle()
    #expect(tasks.map(\.value) == [count, count])
    // A share is 256 KiB and the receive that exceeds it.
    #expect(order.value.count >= 2 * (count / (512 * 1024)))
    #expect(world.leftovers == [])
  }

  /// The deadline ends a transfer also if the server sends faster than the client reads.
  @Test func theDeadlineOfABusyChannel() {
    let count = 64 << 20
    peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n".utf8) + Array(repeating: 0, count: 8 << 20))
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request(), deadline: world.loop.now.advanced(by: .seconds(1)))
      _ = try await exchange.receiveData { _ in world.kernel.advance(by: .seconds(2)) }
      try await exchange.discardBody()
    }
    world.settle()
    #expect(running.transportError == .timedOut(.receivingBody))
    #expect(peer.unfetched > 0)
    #expect(world.leftovers == [])
  }
}
