import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// Request bodies that a caller's code produces.
@Suite struct ProducerTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  struct Trouble: Error {}

  @Test func aKnownLength() {
    let head = request("POST", body: 11)
    let running = world.exchange(
      head,
      .produced(length: 11) { writer in
        for piece in ["he", "", "llo", " world"] { try await writer.write(Array(piece.utf8)) }
      })
    world.settle()
    #expect(peer.received == head.bytes + Array("hello world".utf8))
    peer.send(helloResponse)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  /// A body is over with the last byte of its length (RFC 9112 6.2): the producer need not return.
  @Test func aProducerThatStaysOpen() {
    let head = request("POST", body: 11)
    let isCancelled = Shared(false)
    let (more, continuation) = AsyncStream<Void>.makeStream()
    let running = world.exchange(
      head,
      .produced(length: 11) { writer in
        for piece in ["hello", " world"] { try await writer.write(Array(piece.utf8)) }
        // Ends by the cancellation only.
        for await _ in more {}
        isCancelled.value = true
      })
    world.settle()
    #expect(peer.received == head.bytes + Array("hello world".utf8))
    peer.send(helloResponse)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello") && isCancelled.value)
    #expect(world.leftovers == [])
    continuation.finish()
  }

  /// Empty pieces do not end a chunked body; otherwise the next piece would be taken for the next request.
  @Test func anUnknownLength() {
    let head = chunkedRequest()
    let running = world.exchange(
      head,
      .produced(length: nil) { writer in
        for piece in ["", "hello", "", " world", ""] {
          try await writer.write(Array(piece.utf8))
          for _ in 0..<20 { await Task.yield() }
        }
        await writer.trailer("X-Sum", "42")
      })
    world.settle()
    #expect(
      peer.receivedText
        == String(decoding: head.bytes, as: UTF8.self)
        + "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 42\r\n\r\n")
    peer.send(helloResponse)
    world.settle()
    #expect(running.value?.status == 200)
    #expect(world.leftovers == [])
  }

  /// A chunked head with a body in memory: one chunk, or none for an empty body.
  @Test(arguments: ["", "hello"]) func bytesInOneChunk(text: String) {
    let head = chunkedRequest()
    let running = world.exchange(head, .bytes(Array(text.utf8)))
    peer.send(helloResponse)
    world.settle()
    let chunk = text.isEmpty ? "" : "5\r\nhello\r\n"
    #expect(peer.received == head.bytes + Array((chunk + "0\r\n\r\n").utf8))
    #expect(running.value?.status == 200)
  }

  @Test(arguments: [
    (0, BodyFailure.tooShort(missing: 10)), (9, .tooShort(missing: 1)), (11, .tooLong), (1000, .tooLong),
  ])
  func anotherLength(count: Int, failure: BodyFailure) {
    let head = request("POST", body: 10)
    let running = world.exchange(
      head, .produced(length: 10) { writer in for _ in 0..<count { try await writer.write([0]) } })
    world.settle()
    #expect(running.transportError == .bodyFailed(failure))
    // The server never sees a complete request.
    #expect(peer.received.count < head.bytes.count + 10 || failure == .tooLong)
    #expect(peer.received.count <= head.bytes.count + 10)
    #expect(!peer.isOpen)
    #expect(world.leftovers == [])
  }

  @Test func anErrorOfTheProducer() {
    let running = world.exchange(
      chunkedRequest(),
      .produced(length: nil) { writer in
        try await writer.write([1])
        throw Trouble()
      })
    world.settle()
    #expect(running.transportError == .bodyFailed(.producerFailed("Trouble()")))
    #expect(!peer.receivedText.contains("0\r\n\r\n"))
    #expect(world.leftovers == [])
  }

  @Test func trailersThatCannotBeSent() {
    let running = world.exchange(
      chunkedRequest(), .produced(length: nil) { writer in await writer.trailer("Content-Length", "5") })
    world.settle()
    let wasRefused = if case .bodyFailed(.trailersInvalid)? = running.transportError { true } else { false }
    #expect(wasRefused)
    let other = world.exchange(
      request("POST", body: 0), .produced(length: 0) { writer in await writer.trailer("X", "5") })
    world.settle()
    #expect(other.transportError == .bodyFailed(.trailersInvalid("the body is not chunked")))
    #expect(world.leftovers == [])
  }

  @Test func aHeadThatAnnouncesSomethingElse() {
    let hasRun = Shared(false)
    for (head, length) in [(request("POST", body: 9), 10), (request("POST", body: 9), nil), (request(), 1)] {
      let running = world.exchange(head, .produced(length: length) { _ in hasRun.value = true })
      world.settle()
      #expect(running.transportError == .localMisuse(.bodyLengthWrong))
    }
    #expect(!hasRun.value)
    #expect(world.leftovers == [])
  }

  /// If the server does not read, the producer is suspended, and the number of bytes that it has written is bounded.
  @Test func aSlowServer() {
    let written = Shared(0)
    peer.setSendRoom(0)
    let pieces = 1000
    let running = world.exchange(
      request("POST", body: pieces * 10_000),
      .produced(length: pieces * 10_000) { writer in
        for _ in 0..<pieces {
          try await writer.write(Array(repeating: 1, count: 10_000))
          written.value += 10_000
        }
      })
    world.settle()
    #expect(written.value <= BodyWriter.bytesMax)
    var sent = 0
    while sent < pieces * 10_000, !running.isOver {
      peer.setSendRoom(300_000)
      world.settle()
      sent += 300_000
      #expect(written.value <= sent + 2 * BodyWriter.bytesMax + 10_000)
    }
    peer.send(helloResponse)
    world.settle()
    #expect(running.value?.status == 200)
    #expect(world.leftovers == [])
  }

  /// The upload continues if the share of a tick, 256 KiB, is used up exactly when nothing is left to send.
  @Test(arguments: [false, true]) func theShareOfATurnIsUsedUpExactly(withTheHead: Bool) {
    let share = 256 * 1024
    let head = request("POST", body: share + 1)
    let running = world.exchange(
      head,
      .produced(length: share + 1) { writer in
        let first = withTheHead ? share - head.bytes.count : share
        for count in [first, share + 1 - first] { try await writer.write(Array(repeating: 1, count: count)) }
      })
    world.settle()
    #expect(peer.received.count == head.bytes.count + share + 1)
    peer.send(helloResponse)
    world.settle()
    #expect(running.value?.status == 200)
    #expect(world.leftovers == [])
  }

  /// The producer is suspended at the limit, and not one byte below it.
  @Test(arguments: [0, 1]) func theProducerWaitsAtTheLimit(below: Int) {
    let hasReturned = Shared(false)
    peer.setSendRoom(0)
    let running = world.exchange(
      chunkedRequest(),
      .produced(length: nil) { writer in
        try await writer.write(Array(repeating: 1, count: BodyWriter.bytesMax - below))
        hasReturned.value = true
      })
    world.settle()
    #expect(hasReturned.value == (below == 1))
    peer.setSendRoom(.max)
    peer.send(helloResponse)
    world.settle()
    #expect(hasReturned.value && running.value?.status == 200)
    #expect(world.leftovers == [])
  }

  /// A protocol change in the middle of a body fails the exchange: the remaining bytes of the body would be the new
  /// protocol's first ones.
  @Test func aChangeOfProtocolsInTheMiddle() {
    let running = world.exchange(
      request("POST", body: 10, upgrade: true),
      .produced(length: 10) { writer in
        try await writer.write([1])
        try await Event.cancellation()
      })
    world.tick(20)
    peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
    world.tick(20)
    #expect(running.transportError == .bodyFailed(.notWaitedFor))
    #expect(!peer.isOpen)
  }

  /// An early final response stops the upload, and the producer receives the error at once.
  @Test(arguments: [true, false]) func anEarlyFinalResponse(isFull: Bool) {
    let end = Shared("")
    if isFull { peer.setSendRoom(100) }
    let running = world.exchange(
      chunkedRequest(),
      .produced(length: nil) { writer in
        do {
          for _ in 0..<10_000 {
            try await writer.write(Array(repeating: 1, count: isFull ? 100_000 : 1))
            for _ in 0..<(isFull ? 0 : 10) { await Task.yield() }
          }
        } catch {
          end.value = "\(error)"
          throw error
        }
      })
    world.tick(50)
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
    #expect(world.settle())
    #expect(running.value == Outcome(status: 413, body: "no"))
    #expect(end.value == "cancelled")
    #expect(!peer.isOpen)
    #expect(world.leftovers == [])
  }

  /// A producer that ignores the end of its exchange does not delay the caller.
  @Test func aProducerThatDoesNotEnd() {
    let mayEnd = Event()
    let afterwards = Shared("")
    let running = world.exchange(
      chunkedRequest(),
      .produced(length: nil) { writer in
        try? await mayEnd.wait()
        do {
          try await writer.write([1])
        } catch {
          afterwards.value = "\(error)"
        }
      })
    world.tick(20)
    peer.send("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno")
    world.tick(20)
    #expect(running.value == Outcome(status: 500, body: "no"))
    #expect(world.leftovers == [])
    mayEnd.fire()
    world.settle()
    #expect(afterwards.value == "cancelled")
  }

  /// If the server reads and answers at one time, both directions continue.
  @Test func anEcho() {
    let head = chunkedRequest()
    let mayGoOn = Event()
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(
        head,
        body: .produced(length: nil) { writer in
          try await writer.write([1])
          try await mayGoOn.wait()
          try await writer.write([2])
        })
      try await exchange.discardBody()
      return connection.isIdle
    }
    world.tick(20)
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\u{1}\r\n")
    world.tick(20)
    mayGoOn.fire()
    world.settle()
    #expect(peer.received == head.bytes + Array("1\r\n\u{1}\r\n1\r\n\u{2}\r\n0\r\n\r\n".utf8))
    peer.send("0\r\n\r\n")
    world.settle()
    #expect(running.value == true)
  }

  /// The producer ends also if the caller releases everything after an early response.
  @Test func anAbandonedExchange() {
    let end = Shared("")
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      _ = try await connection.send(
        chunkedRequest(),
        body: .produced(length: nil) { writer in
          do {
            while true { try await writer.write(Array(repeating: 1, count: 100_000)) }
          } catch {
            end.value = "\(error)"
          }
        })
    }
    peer.setSendRoom(100)
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    world.settle()
    #expect(running.isOver)
    #expect(end.value == "cancelled")
    #expect(world.leftovers == [])
  }
}

/// `Expect: 100-continue` (RFC 9110 10.1.1).
@Suite struct ExpectationTests {
  let world: ScriptedWorld
  var peer: ScriptedPeer { world.kernel.peer() }
  static let fields = [("Expect", "100-Continue")]
  static let body = pattern(1000)

  init() throws {
    world = try ScriptedWorld()
  }

  func head(_ count: Int = 1000) throws -> RequestHead {
    var writer = try RequestWriter(method: "PUT", target: "/", host: "a.example")
    try writer.field("Expect", "100-Continue")
    return writer.finish(body: .length(UInt(count)))
  }

  @Test func theServerAgrees() throws {
    let head = try head()
    let running = world.exchange(head, .bytes(Self.body))
    world.settle()
    #expect(peer.received == head.bytes)
    // Another interim response does not release the body.
    peer.send("HTTP/1.1 103 Early Hints\r\n\r\n")
    world.settle()
    #expect(peer.received == head.bytes)
    peer.send("HTTP/1.1 100 Continue\r\n\r\n")
    world.settle()
    #expect(peer.received == head.bytes + Self.body)
    peer.send(helloResponse)
    world.settle()
    #expect(running.value?.status == 200)
    #expect(world.leftovers == [])
  }

  /// A server that does not know the expectation stays silent, and the body is sent after the wait.
  @Test(arguments: [nil, Duration.milliseconds(250), .zero]) func theServerSaysNothing(wait: Duration?) throws {
    let head = try head()
    var timeouts = Timeouts()
    if let wait { timeouts.expectation = wait }
    let running = world.exchange(head, .bytes(Self.body), timeouts: timeouts)
    world.settle()
    let wait = wait ?? .seconds(1)
    if wait > .zero {
      world.advance(by: wait - .milliseconds(1))
      #expect(peer.received == head.bytes)
      world.advance(by: .milliseconds(1))
    }
    #expect(peer.received == head.bytes + Self.body)
    peer.send(helloResponse)
    world.settle()
    #expect(running.value?.status == 200)
    #expect(world.leftovers == [])
  }

  /// After a final response the body is not sent, so the connection ends with the response.
  /// CVE-2024-24791: the connection was kept, and the server took the next request for the body.
  @Test(arguments: [200, 302, 417, 500]) func aFinalResponse(status: Int) throws {
    let head = try head()
    let hasRun = Shared("")
    let running = world.exchange(
      head,
      .produced(length: 1000) { writer in
        do {
          while true { try await writer.write([1]) }
        } catch {
          hasRun.value = "\(error)"
        }
      })
    world.tick(20)
    peer.send("HTTP/1.1 \(status) X\r\nContent-Length: 2\r\n\r\nno")
    world.settle()
    #expect(running.value == Outcome(status: status, body: "no"))
    #expect(peer.received == head.bytes)
    #expect(!peer.isOpen)
    world.advance(by: .seconds(2))
    #expect(world.leftovers == [])
  }

  /// An empty body is complete without consent, so the connection can be reused.
  @Test func nothingToHoldBack() throws {
    let head = try head(0)
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      _ = try await connection.send(head, body: .none).collectBody(bytesMax: 10)
      return connection.isIdle
    }
    peer.send(helloResponse)
    world.settle()
    #expect(running.value == true)
  }
}
