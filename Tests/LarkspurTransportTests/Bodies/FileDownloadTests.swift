import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// Downloads of response bodies into files.
@Suite struct FileDownloadTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }
  static let body = pattern(100_000)

  init() throws {
    world = try ScriptedWorld()
  }

  struct Result: Hashable, Sendable {
    var count: Int
    var isIdle: Bool
  }

  func download(into file: ScriptedFile, progress: Shared<[Int]> = Shared([])) -> Running<Result> {
    world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      let count = try await exchange.receiveBody(into: file.openFile) { progress.value.append($0) }
      return Result(count: count, isIdle: connection.isIdle)
    }
  }

  enum Framing: CaseIterable { case length, chunked, untilClose }

  static func response(_ framing: Framing, _ body: [UInt8]) -> [UInt8] {
    switch framing {
    case .length: Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
    case .untilClose: Array("HTTP/1.1 200 OK\r\n\r\n".utf8) + body
    case .chunked:
      Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(String(body.count, radix: 16))\r\n".utf8) + body
        + Array("\r\n0\r\n\r\n".utf8)
    }
  }

  /// The response is cut at several positions: in the head, after it, and in the body.
  @Test(arguments: Framing.allCases, [1, 40, 41, 45, 100, 50_000]) func everyFraming(framing: Framing, cut: Int) {
    let file = kernel.makeFile()
    let progress = Shared<[Int]>([])
    let running = download(into: file, progress: progress)
    let bytes = Self.response(framing, Self.body)
    peer.send(Array(bytes[..<cut]), Array(bytes[cut..<60_000]), Array(bytes[60_000...]))
    if framing == .untilClose { peer.close() }
    world.settle()
    #expect(file.contents == Self.body)
    #expect(running.value == Result(count: Self.body.count, isIdle: framing != .untilClose))
    #expect(progress.value.last == Self.body.count && progress.value == progress.value.sorted())
    // Only bytes that came in one receive with the head, or between chunks, pass through user memory.
    #expect((kernel.counts.splices == 0) == (framing == .chunked))
    #expect(world.leftovers == [])
  }

  @Test func anEmptyBody() {
    let file = kernel.makeFile()
    let running = download(into: file)
    peer.send("HTTP/1.1 204 No Content\r\n\r\n")
    world.settle()
    #expect(running.value == Result(count: 0, isIdle: true))
    #expect(file.contents == [])
  }

  /// Downloads work without splicing into the file, with small pipes, and without pipes.
  @Test(arguments: ["file", "small pipe", "no pipe"]) func aKernelThatCannot(what: String) {
    let file = kernel.makeFile()
    switch what {
    case "file": file.refuseSplices()
    case "small pipe": kernel.setPipeBytesMax(1000)
    default: kernel.willFailToOpenPipe(.tooManyDescriptors, .tooManyDescriptorsInSystem)
    }
    let running = download(into: file)
    let bytes = Self.response(.length, Self.body)
    peer.send(Array(bytes[..<50]), Array(bytes[50..<30_000]), Array(bytes[30_000...]))
    world.settle()
    #expect(running.value == Result(count: Self.body.count, isIdle: true))
    #expect(file.contents == Self.body)
    #expect(world.leftovers == [])
  }

  @Test func aSocketThatCannotBeSpliced() {
    let file = kernel.makeFile()
    let running = download(into: file)
    let bytes = Self.response(.length, Self.body)
    peer.send(Array(bytes[..<50]))
    world.settle()
    peer.willFailToReceive(.invalidArgument)
    peer.send(Array(bytes[50...]))
    world.settle()
    #expect(running.value == Result(count: Self.body.count, isIdle: true))
    #expect(file.contents == Self.body)
    #expect(kernel.counts.splices == 1)
  }

  /// A disk that becomes full fails the download: in the bytes that came with the head, in the pipe, or in a chunk.
  @Test(arguments: [Framing.length, .chunked], [0, 5, 50_000, 99_999]) func aFullDisk(framing: Framing, room: Int) {
    let file = kernel.makeFile()
    file.setBytesMax(room)
    let running = download(into: file)
    let bytes = Self.response(framing, Self.body)
    peer.send(Array(bytes[..<80]), Array(bytes[80...]))
    world.settle()
    #expect(running.transportError == .bodyFailed(.fileUnwritable(.noSpace)))
    #expect(file.contents == Array(Self.body[..<room]))
    #expect(!peer.isOpen)
    // A pipe with bytes in it is never reused, and another connection is not affected.
    let second = kernel.makeFile()
    let other = download(into: second)
    kernel.peer(1).send(Array(bytes[..<80]), Array(bytes[80...]))
    world.settle()
    #expect(other.value?.count == Self.body.count)
    #expect(second.contents == Self.body)
    #expect(kernel.openPipes <= 1)
    #expect(world.leftovers == [])
  }

  @Test(arguments: [ScriptedKernel.Arrival.end, .reset]) func anEndInTheMiddle(end: ScriptedKernel.Arrival) {
    let file = kernel.makeFile()
    let running = download(into: file)
    peer.send(Array(Self.response(.length, Self.body).dropLast(5)))
    peer.arrive([end])
    world.settle()
    #expect(
      running.transportError
        == (end == .end
          ? .badResponse(.truncated(.body(missing: 5))) : .connectionLost(.receivingBody, .connectionReset)))
    #expect(world.leftovers == [])
  }

  /// Several files are downloaded one after another over one connection, through one pipe.
  @Test func manyFiles() {
    let file = kernel.makeFile()
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      var count = 0
      for _ in 0..<10 { count += try await connection.send(request()).receiveBody(into: file.openFile) }
      return count
    }
    let bytes = Self.response(.length, Array(Self.body[..<5000]))
    for _ in 0..<10 {
      world.settle()
      peer.send(Array(bytes[..<60]), Array(bytes[60...]))
    }
    world.settle()
    #expect(running.value == 50_000)
    #expect(kernel.socketCount == 1 && kernel.openPipes == 1)
    #expect(world.leftovers == [])
  }

  /// Bytes after the body are never written to the file.
  @Test func bytesBehindTheBody() {
    let file = kernel.makeFile()
    let running = download(into: file)
    peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n".utf8), Array("0123456789stray".utf8))
    world.settle()
    #expect(file.contents == Array("0123456789".utf8))
    #expect(running.value?.count == 10)
  }

  /// While the caller does not ask for data, nothing is read, and nothing is lost.
  @Test func suspension() {
    let file = kernel.makeFile()
    let mayGoOn = Event()
    let count = 8 << 20
    let body = Array(repeating: UInt8(7), count: count)
    let running = world.start { [world] in
      let connection = try await Connection.open(to: [address], on: world.loop)
      let exchange = try await connection.send(request())
      var total = 0
      for _ in 0..<3 { _ = try await exchange.receiveData { total += $0.count } }
      try await mayGoOn.wait()
      return total + (try await exchange.receiveBody(into: file.openFile))
    }
    world.tick(5)
    peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n".utf8), body)
    world.tick(20)
    let receives = kernel.counts.receives
    let unfetched = peer.unfetched
    world.tick(20)
    #expect(kernel.counts.receives == receives)
    #expect(unfetched == peer.unfetched && unfetched > count - (1 << 20))
    mayGoOn.fire()
    world.settle()
    #expect(running.value == count)
    #expect(world.leftovers == [])
  }
}
