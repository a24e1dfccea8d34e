import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import TestKit
import Testing

@testable import LarkspurTransport

/// Byte streams over a scripted kernel: demand, back-pressure, ends and errors.
@Suite(.ownThread) struct ByteStreamTests {
  /// Records what a stream reports, and wants as many bytes as a test says.
  final class Reader: ByteStreamUser {
    var events: [String] = []
    var errors: [TransportError] = []
    var bytes: [UInt8] = []
    /// The number of bytes that are wanted.
    var demand = 0
    var whenReceived: () -> Void = {}

    var acceptsBytes: Bool { demand > 0 }

    func received(_ bytes: Span<UInt8>) -> Int {
      let count = min(demand, bytes.count)
      self.bytes.append(copying: bytes.extracting(first: count))
      demand -= count
      whenReceived()
      return count
    }

    func receivedEnd() { events.append("end") }
    func outputDrained() { events.append("drained") }
    func sendingFailed(_ error: TransportError) { note("sending failed", error) }
    func failed(_ error: TransportError) { note("failed", error) }

    private func note(_ event: String, _ error: TransportError) {
      events.append(event)
      errors.append(error)
    }
  }

  let world: ScriptedWorld
  let reader = Reader()
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  /// Opens a stream with bytes that came behind the head of a 101.
  private func open(behindHead rest: [UInt8] = []) throws -> ByteStream {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      _ = try await connection.send(request(upgrade: true))
      return Shared(connection.takeTunnel())
    }
    let head = Array("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n".utf8)
    peer.send(head + rest)
    world.settle()
    let tunnel = try #require(running.value?.value)
    let stream = ByteStream(over: tunnel)
    stream.start(for: reader)
    world.settle()
    return stream
  }

  private var sent: [UInt8] { Array(peer.received.dropFirst(request(upgrade: true).bytes.count)) }

  @Test func nothingIsReceivedWithoutDemand() throws {
    let stream = try open()
    let receives = world.kernel.counts.receives
    peer.send(pattern(1000))
    world.settle()
    #expect(world.kernel.counts.receives == receives)
    reader.demand = 10
    stream.resumeReceiving()
    #expect(reader.bytes == Array(pattern(10)))
    // The rest has been received, and comes first.
    reader.demand = 2000
    stream.resumeReceiving()
    #expect(reader.bytes == pattern(1000))
    peer.send([1, 2])
    world.settle()
    #expect(reader.bytes.suffix(2) == [1, 2])
    stream.close()
    world.settle()
    #expect(world.leftovers == [])
    #expect(world.loop.chunkBytesLent == 0)
  }

  @Test func bytesBehindTheHeadComeFirst() throws {
    reader.demand = 3
    let stream = try open(behindHead: [1, 2, 3, 4])
    #expect(reader.bytes == [1, 2, 3])
    peer.send([5])
    world.settle()
    reader.demand = 9
    stream.resumeReceiving()
    #expect(reader.bytes == [1, 2, 3, 4, 5])
    stream.close()
    #expect(world.leftovers == [])
  }

  /// An idle stream holds no memory of the loop, and a stream that is read in pieces holds one chunk.
  @Test func anIdleStreamHoldsNoChunk() throws {
    reader.demand = .max
    let stream = try open()
    peer.send(pattern(5000))
    world.settle()
    #expect(reader.bytes.count == 5000)
    #expect(world.loop.chunkBytesLent == 0)
    stream.close()
    #expect(world.leftovers == [])
  }

  @Test func theKernelTakesBytesInPieces() throws {
    let stream = try open()
    peer.setSendRoom(1000)
    stream.write(pattern(2500))
    #expect(stream.unsentBytes == 1500)
    #expect(reader.events == [])
    stream.write([7])
    peer.setSendRoom(.max)
    world.settle()
    #expect(sent == pattern(2500) + [7])
    #expect(reader.events == ["drained"])
    stream.close()
    #expect(world.leftovers == [])
  }

  /// A long write that continues from `outputDrained` each time costs no stack.
  @Test func aMillionWritesInARow() throws {
    let stream = try open()
    final class Writer: ByteStreamUser {
      var left = 100_000
      weak var stream: ByteStream?
      var acceptsBytes: Bool { false }
      func received(_ bytes: Span<UInt8>) -> Int { 0 }
      func receivedEnd() {}
      func outputDrained() {
        guard left > 0 else { return }
        left -= 1
        stream?.write([1])
      }
      func sendingFailed(_ error: TransportError) {}
      func failed(_ error: TransportError) {}
    }
    let writer = Writer()
    writer.stream = stream
    stream.start(for: writer)
    stream.write([1])
    world.settle()
    #expect(writer.left == 0)
    #expect(sent.count == 100_001)
    stream.close()
    #expect(world.leftovers == [])
  }

  @Test func theEndComesBehindTheBytes() throws {
    let stream = try open()
    peer.send([1, 2, 3])
    peer.close()
    world.settle()
    #expect(reader.events == [])
    reader.demand = 2
    stream.resumeReceiving()
    #expect(reader.events == [])
    reader.demand = 2
    stream.resumeReceiving()
    #expect(reader.bytes == [1, 2, 3])
    #expect(reader.events == ["end"])
    // Sending continues.
    stream.write([9])
    #expect(sent == [9])
    stream.close()
    #expect(world.leftovers == [])
  }

  @Test func aReset() throws {
    reader.demand = .max
    let stream = try open()
    peer.reset()
    world.settle()
    #expect(reader.events == ["failed"])
    #expect(world.leftovers == [])
    // Nothing happens any more.
    stream.write([1])
    stream.resumeReceiving()
    stream.close()
    #expect(reader.events == ["failed"])
  }

  /// The server has closed, and what it sent before is still delivered.
  @Test func aBrokenPipe() throws {
    let stream = try open()
    peer.send([1, 2])
    world.settle()
    peer.willFailToSend(.brokenPipe)
    stream.write([3])
    #expect(reader.events == ["sending failed"])
    reader.demand = 5
    stream.resumeReceiving()
    #expect(reader.bytes == [1, 2])
    stream.write([3])
    #expect(sent == [])
    stream.close()
    #expect(world.leftovers == [])
  }

  /// The kernel reports a loss once. If a send has got the report, the end of the stream behind the last bytes is that
  /// of a lost connection, and later sends fail with its cause.
  @Test(arguments: [Errno.connectionReset, .timedOut, .brokenPipe])
  func anEndBehindALossThatASendHasMet(error: Errno) throws {
    let stream = try open()
    peer.send([1, 2, 3, 4, 5])
    peer.close()
    world.settle()
    peer.willFailToSend(error, .brokenPipe)
    stream.write([6])
    #expect(reader.events == ["sending failed"] && reader.errors == [.connectionLost(.receivingBody, error)])
    reader.demand = 5
    stream.resumeReceiving()
    #expect(reader.bytes == [1, 2, 3, 4, 5])
    reader.demand = 1
    stream.resumeReceiving()
    let isWhole = error == .brokenPipe
    #expect(reader.events.last == (isWhole ? "end" : "failed"))
    #expect(reader.errors.dropFirst() == (isWhole ? [] : [.connectionLost(.receivingBody, error)]))
    stream.close()
    #expect(world.leftovers == [])
  }

  @Test func theSendingSideIsClosedBehindTheBytes() throws {
    let stream = try open()
    peer.setSendRoom(1)
    stream.write([1, 2])
    stream.closeSending()
    #expect(!peer.localCalls.contains(.shutDownSending))
    peer.setSendRoom(.max)
    world.settle()
    #expect(sent == [1, 2])
    #expect(peer.localCalls.contains(.shutDownSending))
    // Bytes behind the end are dropped.
    stream.write([3])
    #expect(sent == [1, 2])
    reader.demand = 1
    peer.send([8])
    stream.resumeReceiving()
    world.settle()
    #expect(reader.bytes == [8])
    stream.close()
    #expect(world.leftovers == [])
  }

  @Test func theUserClosesWhileItReceives() throws {
    let stream = try open()
    reader.demand = 10
    reader.whenReceived = { stream.close() }
    stream.resumeReceiving()
    peer.send([1, 2, 3])
    world.settle()
    #expect(reader.bytes == [1, 2, 3])
    #expect(reader.events == [])
    #expect(world.leftovers == [])
    #expect(world.loop.chunkBytesLent == 0)
    reader.whenReceived = {}
  }

  /// A connection that is given away takes its unread bytes along, and its former user hears nothing more.
  @Test func aStreamIsGivenAway() throws {
    reader.demand = 1
    let stream = try open()
    peer.send([1, 2, 3])
    world.settle()
    #expect(reader.bytes == [1])
    peer.setSendRoom(0)
    stream.write([5])
    #expect(stream.detach() == nil)
    peer.setSendRoom(.max)
    world.settle()
    let other = Reader()
    other.demand = 9
    let next: ByteStream
    do {
      let tunnel = try #require(stream.detach())
      #expect(tunnel.received == [2, 3])
      next = ByteStream(over: tunnel)
    }
    next.start(for: other)
    peer.send([4])
    world.settle()
    #expect(other.bytes == [2, 3, 4])
    #expect(reader.bytes == [1])
    next.close()
    #expect(world.leftovers == [])
  }

  /// Bytes that the former user has taken and gives back come before those that it has not taken.
  @Test func aStreamIsGivenAwayWithBytesThatWereTaken() throws {
    reader.demand = 2
    let stream = try open()
    peer.send([1, 2, 3])
    world.settle()
    let tunnel = try #require(stream.detach(behind: reader.bytes))
    #expect(tunnel.received == [1, 2, 3])
  }

  /// A writer that a fast peer never slows down sends its share of a tick and lets others run.
  @Test func aLongWriteHasItsShareOfATick() throws {
    let stream = try open()
    let ticks = world.loop.tickNumber
    stream.write([UInt8](repeating: 7, count: 10 * Channel.tickBytesMax))
    #expect(sent.count <= 2 * Channel.tickBytesMax)
    world.settle()
    #expect(sent.count == 10 * Channel.tickBytesMax)
    #expect(world.loop.tickNumber - ticks >= 9)
    #expect(reader.events == ["drained"])
    stream.close()
    #expect(world.leftovers == [])
  }

  /// A connection that has answered becomes a stream: the bytes behind the head follow as they come.
  @Test func aResponseBecomesAStream() throws {
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      #expect(exchange.status == 200)
      let tunnel = connection.takeStream()
      #expect(!connection.isIdle)
      return Shared(tunnel)
    }
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
    world.settle()
    let stream = ByteStream(over: try #require(running.value?.value))
    running.value?.value = nil
    reader.demand = 100
    stream.start(for: reader)
    peer.send("lo\r\n")
    world.settle()
    #expect(String(decoding: reader.bytes, as: UTF8.self) == "5\r\nhello\r\n")
    stream.close()
    #expect(world.leftovers == [])
  }

  /// Before the response has begun there is no stream to take.
  @Test func aRequestIsNoStream() throws {
    let open = Shared<Connection?>(nil)
    let running = world.run { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      open.value = connection
      return try await connection.send(request()).status
    }
    let isTaken = world.run { open.value?.takeStream() != nil }
    #expect(isTaken.value == false)
    peer.send("HTTP/1.1 204 No Content\r\n\r\n")
    world.settle()
    #expect(running.value == 204)
    open.value?.close()
    #expect(world.leftovers == [])
  }
}
