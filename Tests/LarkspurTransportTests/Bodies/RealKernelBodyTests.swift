import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Transfers between real files and real sockets, plain and over TLS.
@Suite struct RealKernelBodyTests {
  /// A file that is deleted with the test's object.
  final class Scratch: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "larkspur-\(UUID().uuidString)").path

    func written(_ bytes: [UInt8]) throws -> OpenFile {
      try OpenFile(creating: path).write(bytes.span)
      return try OpenFile(reading: path)
    }

    var contents: [UInt8] { get throws { try OpenFile(reading: path).readToEnd() } }

    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  /// Pipes, directories and devices are not opened, because opening or reading them may block.
  @Test func whatIsNoRegularFileIsNotOpened() throws {
    let scratch = Scratch()
    #expect(mkfifo(scratch.path, 0o600) == 0)
    for path in [scratch.path, "/", "/dev/zero"] {
      #expect(throws: Errno.invalidArgument) { try OpenFile(readingRegular: path) }
    }
    #expect(throws: Errno.noSuchFile) { try OpenFile(readingRegular: scratch.path + "x") }
    #expect(try OpenFile(readingRegular: "/etc/passwd").isRegularFile)
  }

  /// Runs `operation` over a connection to a new server.
  func withServer<T: Sendable>(
    isSecure: Bool, enqueue script: TestServer.Script? = nil,
    _ operation: @escaping @Sendable (Connection) async throws -> T
  ) async throws -> (value: T, server: TestServer) {
    let ca = try TestCA()
    let server = try isSecure ? SecureExchangeTests.server(ca) : TestServer()
    if let script { server.enqueue(script) }
    let client = try SecureClient(trusting: ca)
    let (loop, port) = (client.loop, UInt16(server.port))
    let security = isSecure ? client.security : nil
    let value = try await loop.run {
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop,
        deadline: loop.kernel.now().advanced(by: .seconds(60)))
      defer { connection.close() }
      return try await operation(connection)
    }
    return (value, server)
  }

  @Test(arguments: [false, true], [0, 1, 65_536, 3_000_000]) func upload(isSecure: Bool, count: Int) async throws {
    let contents = pattern(count + 10)
    let scratch = Scratch()
    let file = try scratch.written(contents)
    let (_, server) = try await withServer(isSecure: isSecure) { connection in
      for _ in 0..<2 {
        try await connection.send(
          request("POST", "/post", body: count), body: .file(file, offset: 5, length: count)
        ).discardBody()
      }
    }
    #expect(server.requests.count == 2)
    for received in server.requests { #expect(received.body == Array(contents[5..<5 + count])) }
    #expect(server.connectionsAccepted == 1)
  }

  @Test(arguments: [false, true], [true, false]) func producer(isSecure: Bool, isChunked: Bool) async throws {
    let contents = pattern(1_000_000)
    let head = isChunked ? chunkedRequest(to: "/post") : request("POST", "/post", body: contents.count)
    let (_, server) = try await withServer(isSecure: isSecure) { connection in
      let body = RequestBody.produced(length: isChunked ? nil : contents.count) { writer in
        var start = 0
        while start < contents.count {
          let end = min(start + 1 + start % 30_000, contents.count)
          try await writer.write(Array(contents[start..<end]))
          start = end
        }
      }
      try await connection.send(head, body: body).discardBody()
    }
    #expect(server.requests.first?.body == contents)
  }

  @Test(arguments: [false, true], [0, 1, 100_000, 5_000_000]) func download(isSecure: Bool, count: Int) async throws {
    let scratch = Scratch()
    let file = try OpenFile(creating: scratch.path)
    let (received, _) = try await withServer(isSecure: isSecure) { connection in
      var total = 0
      for _ in 0..<2 {
        total += try await connection.send(request("GET", "/bytes/\(count)")).receiveBody(into: file)
      }
      return total
    }
    #expect(received == 2 * count)
    #expect(try scratch.contents == TestServer.content(0..<count) + TestServer.content(0..<count))
  }

  /// A connection whose last reference is released on another thread closes.
  @Test func aConnectionThatIsDroppedElsewhere() async throws {
    let server = try TestServer()
    server.enqueue([.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), .hang])
    let (loop, port) = (try ClientLoop(), UInt16(server.port))
    defer { loop.stop() }
    let kept = Shared<Connection?>(nil)
    let (ends, end) = AsyncStream<String>.makeStream()
    try await loop.run {
      let connection = try await Connection.open(to: [.loopback(port: port)], on: loop)
      kept.value = connection
      _ = try await connection.send(
        chunkedRequest(to: "/x"),
        body: .produced(length: nil) { writer in
          do {
            while true { try await writer.write(Array(repeating: 1, count: 100_000)) }
          } catch {
            end.yield("\(error)")
            end.finish()
          }
        })
    }
    kept.value = nil
    var events: [String] = []
    for await event in ends { events.append(event) }
    #expect(events == ["cancelled"])
  }

  /// A download into a device that is always full fails.
  @Test(arguments: [false, true]) func aFullDevice(isSecure: Bool) async throws {
    let full = try OpenFile(overwriting: "/dev/full")
    let (error, _) = try await withServer(isSecure: isSecure) { connection in
      do throws(TransportError) {
        _ = try await connection.send(request("GET", "/bytes/1000000")).receiveBody(into: full)
        return TransportError?.none
      } catch {
        return error
      }
    }
    #expect(error == .bodyFailed(.fileUnwritable(.noSpace)))
  }

  /// The limit on unsent bytes holds: by default the kernel accepts megabytes, which a slow network carries for minutes
  /// after the last of them was "sent".
  @Test func anUploadWaitsForItsNetwork() throws {
    let listener = try BlockingListener(address: .loopback(port: 0))
    let socket = try ClientSocket(for: .loopback(port: 0), kernel: LinuxKernel.shared)
    _ = try socket.connect(to: .loopback(port: listener.port))
    let peer = try listener.accept()
    try socket.finishConnecting()
    socket.limitUnsent()
    var queue = ByteQueue()
    queue.append([UInt8](repeating: 1, count: 16 << 20))
    let sentAll = try socket.send(&queue)
    // The kernel accepts what the peer has room for, and a little more.
    #expect(!sentAll && queue.byteCount > 15 << 20, "\(queue.byteCount) bytes are left")
    withExtendedLifetime(peer) {}
  }

  /// `sendfile` on a broken pipe must not end the process by SIGPIPE, although the call has no flag against that.
  @Test func aBrokenPipeRaisesNoSignal() throws {
    let scratch = Scratch()
    let (kernel, ends) = (LinuxKernel.shared, LinuxKernel.shared.openPipe())
    _ = try scratch.written([1, 2, 3])
    let file = try #require(open(scratch.path, O_RDONLY) as Int32?)
    defer { for descriptor in [file, ends.writing] { kernel.close(descriptor) } }
    kernel.close(ends.reading)
    #expect(kernel.sendFile(file, at: 0, count: 3, to: ends.writing) == -Int(Errno.brokenPipe.rawValue))
  }

  /// A connection that breaks in the middle of a file raises no signal either: the first send reaches a closed socket,
  /// and the next one its reset.
  @Test func aConnectionThatBreaksRaisesNoSignal() throws {
    let scratch = Scratch()
    let (kernel, count) = (LinuxKernel.shared, 1 << 20)
    _ = try scratch.written([UInt8](repeating: 1, count: count))
    let file = try #require(open(scratch.path, O_RDONLY) as Int32?)
    defer { kernel.close(file) }
    for _ in 0..<20 {
      let listener = try BlockingListener(address: .loopback(port: 0))
      let socket = try ClientSocket(for: .loopback(port: 0), kernel: kernel)
      _ = try socket.connect(to: .loopback(port: listener.port))
      do { _ = try listener.accept() }
      try socket.finishConnecting()
      while kernel.sendFile(file, at: 0, count: count, to: socket.descriptor.number) > 0 {}
    }
  }

  @Test func aServerThatStopsReading() async throws {
    let count = 20_000_000
    let scratch = Scratch()
    let file = try scratch.written(Array(repeating: 1, count: count))
    let script: TestServer.Script = [.expectHead, .send("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"), .reset]
    let (outcome, _) = try await withServer(isSecure: false, enqueue: script) { connection in
      do throws(TransportError) {
        let exchange = try await connection.send(
          request("PUT", "/x", body: count), body: .file(file, offset: 0, length: count))
        return "\(exchange.status)"
      } catch {
        return "\(error)"
      }
    }
    // The response may be lost with the connection.
    #expect(outcome == "413" || outcome.contains("ECONNRESET"))
  }
}
