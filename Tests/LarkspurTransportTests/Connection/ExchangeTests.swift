import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

let address = SocketAddress.loopback(port: 80)

/// The result of an exchange.
struct Outcome: Hashable, Sendable {
  var status: Int
  var body: String
}

/// Performs one whole exchange.
func fetch(
  _ head: RequestHead, body: [UInt8] = [], over connection: Connection, deadline: Deadline = .never
) async throws(TransportError) -> Outcome {
  let exchange = try await connection.send(head, body: body, deadline: deadline)
  let status = exchange.status
  let received = try await exchange.collectBody(bytesMax: 1 << 20)
  return Outcome(status: status, body: String(decoding: received, as: UTF8.self))
}

/// Requests, responses and their pieces over a scripted kernel.
@Suite struct ExchangeTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  /// Opens a connection and makes requests on it, one after another. Each one is answered by the peer's next arrivals.
  func exchanges(
    _ heads: [RequestHead] = [request()], body: [UInt8] = [], deadline: Duration? = nil
  ) -> Running<[Outcome]> {
    world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      var outcomes: [Outcome] = []
      for head in heads {
        let until = deadline.map { world.loop.now.advanced(by: $0) } ?? .never
        outcomes.append(try await fetch(head, body: body, over: connection, deadline: until))
      }
      return outcomes
    }
  }

  static let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

  @Test func aRequestAndItsResponse() {
    let running = exchanges()
    world.settle()
    #expect(peer.receivedText == "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
    peer.send(Self.response)
    world.settle()
    #expect(running.value == [Outcome(status: 200, body: "hello")])
    #expect(world.leftovers == [])
  }

  static let splitResponses = [
    response,
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nhello",
  ]

  @Test(arguments: splitResponses) func aResponseAtEverySplit(response: String) throws {
    let bytes = Array(response.utf8)
    for split in 0...bytes.count {
      let world = try ScriptedWorld()
      let test = try ExchangeTests(world: world)
      let running = test.exchanges()
      world.settle()
      let peer = world.kernel.peer()
      if split > 0 { peer.send(Array(bytes[..<split])) }
      if split < bytes.count { peer.send(Array(bytes[split...])) }
      peer.close()
      world.settle()
      #expect(running.value == [Outcome(status: 200, body: "hello")], "split at \(split)")
      #expect(world.leftovers == [], "split at \(split)")
    }
  }

  @Test(arguments: splitResponses) func aResponseByteByByte(response: String) {
    let running = exchanges()
    world.settle()
    for byte in response.utf8 { peer.send([byte]) }
    peer.close()
    world.settle()
    #expect(running.value == [Outcome(status: 200, body: "hello")])
    #expect(world.leftovers == [])
  }

  /// The end of the stream may arrive in one event with the last bytes, after which a read is short.
  @Test(arguments: splitResponses) func theEndInTheSameEventAsTheBytes(response: String) {
    let running = exchanges()
    world.settle()
    peer.send(response)
    peer.close()
    // Makes two arrivals before the client's task runs: the kernel waits twice, the loop only once.
    var events = EventBuffer()
    let result = kernel.wait(0, into: &events, milliseconds: 0)
    #expect(result == 1)
    world.settle()
    #expect(running.value == [Outcome(status: 200, body: "hello")])
    #expect(world.leftovers == [])
  }

  @Test func aResetBehindTheBytes() {
    let running = exchanges()
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
    peer.reset()
    world.settle()
    #expect(running.transportError == .connectionLost(.receivingBody, .connectionReset))
    #expect(world.leftovers == [])
  }

  @Test(arguments: [1, 2, 7, 64]) func aRequestInPieces(size: Int) {
    let body = Array(repeating: UInt8(ascii: "b"), count: 300)
    peer.setSendBytesMax(size)
    let running = exchanges([request("POST", body: body.count)], body: body)
    world.settle()
    #expect(peer.received == request("POST", body: body.count).bytes + body)
    peer.send(Self.response)
    world.settle()
    #expect(running.value == [Outcome(status: 200, body: "hello")])
  }

  @Test func aKernelWithoutRoom() {
    let body = Array(repeating: UInt8(ascii: "b"), count: 300)
    let whole = request("POST", body: body.count).bytes + body
    peer.setSendRoom(0)
    let running = exchanges([request("POST", body: body.count)], body: body)
    var sent = 0
    for room in [1, 5, 50, 70, 1000] {
      world.settle()
      #expect(peer.received.count == min(sent, whole.count))
      peer.setSendRoom(room)
      sent += room
    }
    world.settle()
    #expect(peer.received == whole)
    peer.send(Self.response)
    world.settle()
    #expect(running.value?.count == 1)
    #expect(world.leftovers == [])
  }

  @Test func interruptedAndSpuriousCalls() {
    kernel.willFailToWait(.interrupted, .interrupted)
    peer.willFailToSend(.interrupted, .wouldBlock, .interrupted)
    peer.willFailToReceive(.interrupted, .wouldBlock, .interrupted, .interrupted, .wouldBlock)
    peer.arrive([.nothing, .nothing])
    let running = exchanges([request(), request()])
    world.settle()
    peer.arrive([.nothing, .bytes(Array(Self.response.utf8)), .nothing])
    world.settle()
    peer.arrive([.nothing, .bytes(Array(Self.response.utf8))])
    world.settle()
    #expect(running.value?.count == 2)
    #expect(world.leftovers == [])
  }

  /// The kernel reports an error once: after a send has returned the error, a receive returns the end of the stream,
  /// which must not count as the end of the body.
  @Test(arguments: [Errno.brokenPipe, .connectionReset, .timedOut])
  func anEndBehindAnErrorIsNoBodysEnd(error: Errno) {
    let body = Array(repeating: UInt8(ascii: "b"), count: 3000)
    peer.setSendRoom(100)
    let running = exchanges([request("POST", body: body.count)], body: body)
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\n\r\nhalf")
    world.settle()
    peer.willFailToSend(error)
    peer.close()
    peer.setSendRoom(100)
    world.settle()
    if error == .brokenPipe {
      #expect(running.value == [Outcome(status: 200, body: "half")])
    } else {
      #expect(running.transportError == .connectionLost(.receivingBody, error))
    }
    #expect(world.leftovers == [])
  }

  @Test func anEarlyFinalResponse() {
    let body = Array(repeating: UInt8(ascii: "b"), count: 3000)
    peer.setSendRoom(100)
    let running = exchanges([request("POST", body: body.count), request()], body: body)
    world.settle()
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
    world.settle()
    // The response counts, but the connection cannot be reused.
    #expect(peer.received.count == 100)
    #expect(running.transportError == .connectionClosed)
    #expect(world.leftovers == [])
  }

  @Test(arguments: [Errno.brokenPipe, .connectionReset])
  func aBrokenPipeWithAResponseWaiting(error: Errno) {
    let body = Array(repeating: UInt8(ascii: "b"), count: 3000)
    peer.setSendRoom(100)
    let running = exchanges([request("POST", body: body.count)], body: body)
    world.settle()
    peer.willFailToSend(error)
    peer.setSendRoom(5000)
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
    peer.close()
    world.settle()
    #expect(running.value == [Outcome(status: 413, body: "no")])
    #expect(world.leftovers == [])
  }

  @Test func aBrokenPipeWithoutAResponse() {
    peer.willFailToSend(.brokenPipe)
    peer.close()
    let running = exchanges()
    world.settle()
    #expect(running.transportError == .badResponse(.truncated(.beforeHead)))
    #expect(world.leftovers == [])
  }

  /// The kernel reports a reset once: if the send has returned the reset, the receive returns the end of the stream.
  @Test func aResetThatIsMetInSending() {
    peer.willFailToSend(.connectionReset)
    peer.close()
    let running = exchanges()
    world.settle()
    #expect(running.transportError == .connectionLost(.sending, .connectionReset))
    #expect(world.leftovers == [])
  }

  @Test func manyExchangesOnOneConnection() {
    let running = exchanges(Array(repeating: request(), count: 500))
    for index in 0..<500 {
      world.settle()
      peer.send(index % 3 == 0 ? Self.response : Self.splitResponses[1 + index % 2])
    }
    world.settle()
    #expect(running.value == Array(repeating: Outcome(status: 200, body: "hello"), count: 500))
    #expect(kernel.counts.sockets == 1)
    #expect(kernel.counts.sends == 500)
    #expect(world.leftovers == [])
  }

  /// Nothing is received unless the caller asks for data.
  @Test func noDemandNoReceive() {
    let mayGoOn = Event()
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      try await mayGoOn.wait()
      return try await exchange.collectBody(bytesMax: 1 << 20).count
    }
    world.tick(10)
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    world.tick(10)
    let receives = kernel.counts.receives
    peer.send(Array(repeating: 0, count: 100))
    world.tick(10)
    #expect(kernel.counts.receives == receives)
    #expect(peer.unfetched == 100)
    mayGoOn.fire()
    world.settle()
    #expect(running.value == 100)
    #expect(world.leftovers == [])
  }
}

extension ExchangeTests {
  init(world: ScriptedWorld) throws { self.world = world }
}
