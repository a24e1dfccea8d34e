import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

let helloResponse = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/// Returns bytes in a pattern in which misplaced bytes show.
func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) } }

extension ScriptedWorld {
  /// Performs one exchange over a connection of its own.
  func exchange(
    _ head: RequestHead, _ body: RequestBody, timeouts: Timeouts = Timeouts()
  ) -> Running<Outcome> {
    start { [self] in
      let connection = try await Connection.open(to: [address], on: loop)
      let exchange = try await connection.cancelledWithTask { () async throws(TransportError) in
        try await connection.send(head, body: body, timeouts: timeouts)
      }
      let status = exchange.status
      let received = try await exchange.collectBody(bytesMax: 1 << 20)
      return Outcome(status: status, body: String(decoding: received, as: UTF8.self))
    }
  }
}

/// Uploads of bodies from files.
@Suite(.ownThread) struct FileUploadTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }
  static let contents = pattern(700_000)

  init() throws {
    world = try ScriptedWorld()
  }

  /// The kernel sends from the file to the socket without a copy; where the kernel refuses, the bytes are copied.
  @Test(arguments: [true, false], [0, 1, 300_000]) func aPartOfAFile(isSendable: Bool, offset: Int) {
    let file = kernel.makeFile(Self.contents)
    if !isSendable { file.refuseSplices() }
    peer.setSendBytesMax(50_000)
    let length = Self.contents.count - offset - 5
    let head = request("PUT", body: length)
    let running = world.exchange(head, .file(file.openFile, offset: offset, length: length))
    world.settle()
    #expect(peer.received == head.bytes + Self.contents[offset..<offset + length])
    #expect((kernel.counts.fileCopies == 0) == isSendable)
    peer.send(helloResponse)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  @Test func aSlowServer() {
    let file = kernel.makeFile(Self.contents)
    let head = request("PUT", body: Self.contents.count)
    peer.setSendRoom(10)
    let running = world.exchange(head, .file(file.openFile, offset: 0, length: Self.contents.count))
    for room in [1, 100, 70_000, 500_000, .max] {
      world.settle()
      #expect(!running.isOver)
      peer.setSendRoom(room)
    }
    world.settle()
    #expect(peer.received == head.bytes + Self.contents)
    peer.send(helloResponse)
    world.settle()
    #expect(running.value?.status == 200)
    #expect(world.leftovers == [])
  }

  /// The limit on unsent bytes is set once for each connection, and not before the socket's buffer is full for the
  /// first time.
  @Test func theKernelTakesNoMoreThanMaySoonLeave() {
    let loop = world.loop
    let body = Self.contents
    let running = world.start {
      let connection = try await Connection.open(to: [address], on: loop)
      for _ in 0..<3 {
        try await connection.send(request("PUT", body: body.count), body: .bytes(body)).discardBody()
      }
      connection.close()
    }
    world.settle()
    #expect(peer.localCalls == [.setNoDelay])
    for _ in 0..<2 {
      peer.setSendRoom(100_000)
      peer.send(helloResponse)
      world.settle()
      #expect(peer.localCalls == [.setNoDelay, .setUnsentBytesMax(128 * 1024)])
      peer.setSendRoom(.max)
      world.settle()
    }
    peer.send(helloResponse)
    world.settle()
    #expect(running.isOver)
    #expect(world.leftovers == [])
  }

  @Test func anEmptyFile() {
    let file = kernel.makeFile()
    let running = world.exchange(request("PUT", body: 0), .file(file.openFile, offset: 0, length: 0))
    peer.send(helloResponse)
    world.settle()
    #expect(peer.received == request("PUT", body: 0).bytes)
    #expect(running.value?.status == 200)
  }

  /// A range that the file does not have is refused before anything is sent.
  @Test(arguments: [(0, 11), (1, 10), (11, 0), (-1, 5), (Int.max, 1)])
  func aFileThatIsTooSmall(offset: Int, length: Int) {
    let file = kernel.makeFile(pattern(10))
    let running = world.exchange(
      request("PUT", body: length), .file(file.openFile, offset: offset, length: length))
    world.settle()
    #expect(running.transportError == .bodyFailed(.fileChanged))
    #expect(peer.received == [])
    #expect(world.leftovers == [])
  }

  @Test func aHeadThatAnnouncesSomethingElse() {
    let file = kernel.makeFile(pattern(10))
    for head in [request("PUT", body: 9), chunkedRequest(), request()] {
      let running = world.exchange(head, .file(file.openFile, offset: 0, length: 10))
      world.settle()
      #expect(running.transportError == .localMisuse(.bodyLengthWrong))
    }
    #expect(world.leftovers == [])
  }

  /// If the file changes its size at any moment, either all of the body has been sent before, or the request stays
  /// incomplete.
  @Test(arguments: [0, 1, 299_999, 300_001, 600_000], [true, false])
  func aFileThatChangesItsSize(size: Int, isSendable: Bool) throws {
    var failures = 0
    var successes = 0
    for calls in 1..<30 {
      let world = try ScriptedWorld()
      let peer = world.kernel.peer()
      let file = world.kernel.makeFile(pattern(300_000))
      if !isSendable { file.refuseSplices() }
      peer.setSendBytesMax(40_000)
      file.willBecome(pattern(size), after: calls)
      let head = request("PUT", body: 300_000)
      let running = world.exchange(head, .file(file.openFile, offset: 0, length: 300_000))
      #expect(world.settle())
      if running.isOver {
        failures += 1
        #expect(running.transportError == .bodyFailed(.fileChanged))
        #expect(peer.received.count < head.bytes.count + 300_000)
        #expect(!peer.isOpen)
      } else {
        successes += 1
        peer.send(helloResponse)
        world.settle()
        #expect(running.value?.status == 200)
        #expect(peer.received.count == head.bytes.count + 300_000)
      }
      #expect(world.leftovers == [])
    }
    #expect(failures > 0 && successes > 0)
  }

  /// Bytes that change while the size stays: the server gets no request that is complete and has bytes of both.
  @Test func aFileWithOtherBytes() throws {
    let (old, new) = ([UInt8](repeating: 1, count: 300_000), [UInt8](repeating: 2, count: 300_000))
    var failures = 0
    var successes = 0
    for calls in 0..<30 {
      let world = try ScriptedWorld()
      let peer = world.kernel.peer()
      let file = world.kernel.makeFile(old)
      peer.setSendBytesMax(40_000)
      let earlier = try file.openFile.status(by: world.kernel)
      file.willBecome(new, after: calls)
      let head = request("PUT", body: 300_000)
      let running = world.exchange(
        head, .file(file.openFile, offset: 0, length: 300_000, unchangedSince: earlier))
      #expect(world.settle())
      if running.isOver {
        failures += 1
        #expect(running.transportError == .bodyFailed(.fileChanged))
        #expect(peer.received.count < head.bytes.count + 300_000)
      } else {
        successes += 1
        peer.send(helloResponse)
        world.settle()
        #expect(running.value?.status == 200)
        #expect(Array(peer.received.dropFirst(head.bytes.count)) == old)
      }
    }
    #expect(failures > 5 && successes > 5)
  }

  @Test func aFileThatCannotBeRead() {
    let file = kernel.makeFile(Self.contents)
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      file.refuseSplices()
      _ = try await connection.send(
        request("PUT", body: 500_000), body: .file(file.openFile, offset: 0, length: 500_000))
    }
    kernel.beforeCalls { [kernel] _ in if kernel.counts.fileCopies == 3 { file.willFail(.inputOutput) } }
    world.settle()
    #expect(running.transportError == .bodyFailed(.fileUnreadable(.inputOutput)))
    #expect(world.leftovers == [])
  }

  /// If the server stops reading after it has sent a response, the response is delivered.
  @Test func aBrokenPipeWithAResponseWaiting() {
    let file = kernel.makeFile(Self.contents)
    peer.setSendRoom(1000)
    let running = world.exchange(
      request("PUT", body: 700_000), .file(file.openFile, offset: 0, length: 700_000))
    world.settle()
    peer.willFailToSend(.connectionReset, .brokenPipe)
    peer.setSendRoom(5000)
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
    peer.close()
    world.settle()
    #expect(running.value == Outcome(status: 413, body: "no"))
    #expect(world.leftovers == [])
  }

  /// `sendfile` may get the kernel's only report of a loss. The end of the stream is then no end of a response that has
  /// no other end.
  @Test(arguments: [Errno.connectionReset, .brokenPipe, .inputOutput])
  func anEndBehindALossThatSendfileHasMet(error: Errno) {
    let file = kernel.makeFile(Self.contents)
    peer.setSendRoom(1000)
    let running = world.exchange(
      request("PUT", body: 700_000), .file(file.openFile, offset: 0, length: 700_000))
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\n\r\nhalf")
    world.settle()
    peer.willFailToSend(error, .brokenPipe)
    peer.close()
    peer.setSendRoom(5000)
    world.settle()
    if error == .connectionReset {
      #expect(running.transportError == .connectionLost(.receivingBody, error))
    } else {
      #expect(running.value == Outcome(status: 200, body: "half"))
    }
    #expect(world.leftovers == [])
  }

  @Test func anEarlyFinalResponseStopsTheUpload() {
    let file = kernel.makeFile(Self.contents)
    peer.setSendRoom(1000)
    let running = world.exchange(
      request("PUT", body: 700_000), .file(file.openFile, offset: 0, length: 700_000))
    world.settle()
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n")
    world.settle()
    peer.setSendRoom(.max)
    world.settle()
    #expect(peer.received.count == 1000)
    peer.send("no")
    world.settle()
    #expect(running.value == Outcome(status: 413, body: "no"))
    #expect(!peer.isOpen)
    #expect(world.leftovers == [])
  }

  /// A server that answers while it reads receives the whole body, and the connection can be reused.
  @Test func anEarlyGoodResponseDoesNot() {
    let file = kernel.makeFile(Self.contents)
    peer.setSendRoom(1000)
    let head = request("PUT", body: 700_000)
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(head, body: .file(file.openFile, offset: 0, length: 700_000))
      try await exchange.discardBody()
      return connection.isIdle
    }
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    world.settle()
    peer.setSendRoom(.max)
    world.settle()
    #expect(peer.received == head.bytes + Self.contents)
    peer.send("llo")
    world.settle()
    #expect(running.value == true)
  }

  /// If the response is complete long before the request, nothing of either is lost.
  @Test(arguments: [true, false]) func anEarlyAnswerThatIsComplete(isPlainBody: Bool) {
    let file = kernel.makeFile(Self.contents)
    peer.setSendRoom(1000)
    let head = request("PUT", body: 700_000)
    let body: RequestBody =
      isPlainBody ? .bytes(Self.contents) : .file(file.openFile, offset: 0, length: 700_000)
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(head, body: body)
      var text: [UInt8] = []
      while try await exchange.receiveData({ text.append(copying: $0) }) {}
      return connection.isIdle && text == Array("hello".utf8)
    }
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    world.settle()
    #expect(running.value == nil)
    peer.setSendRoom(.max)
    world.settle()
    #expect(peer.received == head.bytes + Self.contents)
    #expect(running.value == true)
  }

  /// If the server answers and goes away before it has read the whole body, the response counts.
  @Test(arguments: [true, false]) func anEarlyAnswerAndTheEnd(isReset: Bool) {
    let file = kernel.makeFile(Self.contents)
    peer.setSendRoom(1000)
    let running = world.exchange(
      request("PUT", body: 700_000), .file(file.openFile, offset: 0, length: 700_000))
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    world.settle()
    #expect(running.value == nil)
    if isReset { peer.reset() } else { peer.close() }
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(!peer.isOpen)
    #expect(world.leftovers == [])
  }

  /// However fast the server reads, no connection sends more than its share (256 KiB) in one tick.
  @Test(arguments: [true, false]) func aShareOfEachTurn(isFile: Bool) {
    let count = 1 << 20
    let file = kernel.makeFile(pattern(count))
    let body: RequestBody = isFile ? .file(file.openFile, offset: 0, length: count) : .bytes(pattern(count))
    let head = request("PUT", body: count)
    let tasks = (0..<2).map { _ in world.exchange(head, body) }
    var before = [0, 0]
    for _ in 0..<1000 where before != [head.bytes.count + count, head.bytes.count + count] {
      world.tick()
      for index in 0..<2 {
        let sent = kernel.peer(index).received.count
        #expect(sent - before[index] <= 256 * 1024)
        before[index] = sent
      }
    }
    for index in 0..<2 {
      #expect(kernel.peer(index).received.suffix(count) == pattern(count)[...])
      kernel.peer(index).send(helloResponse)
    }
    world.settle()
    #expect(tasks.allSatisfy { $0.value?.status == 200 })
    #expect(world.leftovers == [])
  }
}

func chunkedRequest(to target: String = "/") -> RequestHead {
  do {
    return try RequestWriter(method: "POST", target: target, host: "a.example").finish(body: .chunked)
  } catch {
    Issue.record("\(error)")
    return request()
  }
}
