import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// Byte streams over TLS, against a server that does what a test says.
@Suite struct SecureByteStreamTests {
  let ca: TestCA
  let server: TestServer
  var client: SecureClient

  init() throws {
    ca = try TestCA()
    server = try SecureExchangeTests.server(ca) { $0.versions = .tls1_3 ... .tls1_3 }
    client = try SecureClient(trusting: ca)
  }

  /// Takes as many bytes as it wants, and notes the end.
  private final class Reader: ByteStreamUser, @unchecked Sendable {
    var demand = 0
    var bytes: [UInt8] = []
    var end: TaskContinuation?
    var hasEnded = false
    var sendingError: TransportError?
    var acceptsBytes: Bool { demand > 0 }

    func received(_ bytes: Span<UInt8>) -> Int {
      let count = min(demand, bytes.count)
      self.bytes.append(copying: bytes.extracting(first: count))
      demand -= count
      return count
    }

    func receivedEnd() {
      hasEnded = true
      end.take()?.resume()
    }

    func outputDrained() {}
    func sendingFailed(_ error: TransportError) { sendingError = error }
    func failed(_ error: TransportError) { receivedEnd() }

    func waitForEnd() async { if !hasEnded { await TaskContinuation.suspend { self.end = $0 } } }
  }

  /// Runs on the loop, with a stream to the server.
  private func withStream(_ body: @escaping @Sendable (ByteStream) async throws -> Void) async throws {
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    try await loop.run {
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      let stream = ByteStream(over: try #require(connection.takeStream()))
      defer { stream.close() }
      try await body(stream)
    }
  }

  /// Half a message of TLS's own blocks the output until its rest has been received, which is not received before the
  /// user has taken the bytes in front of it. The loop waits meanwhile.
  @Test(.timeLimit(.minutes(1))) func halfAMessageAfterBytesThatAreNotRead() async throws {
    let (sent, more, done) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    server.enqueue([
      .sendRecord(type: 23, [1, 2]), .sendRecord(type: 22, [4, 0, 0, 200, 0, 0]), .fire(sent), .wait(more),
      .sendBelowTLS([22, 3, 3]), .fire(done), .expectClose,
    ])
    let reader = Reader()
    let (client, server) = (client, server)
    try await withStream { stream in
      stream.start(for: reader)
      try await sent.wait()
      reader.demand = 1
      stream.resumeReceiving()
      await Wait.until("a byte is received") { !reader.bytes.isEmpty }
      stream.write([7])
      more.fire()
      try await done.wait()
      #expect(await client.get(from: server).status == 200)
    }
    #expect(reader.bytes == [1])
  }

  /// A failed answer to a message of TLS's own is reported with the next write, and the loop does not wait for a
  /// connection that takes nothing more. What has been received before is still delivered.
  @Test(.timeLimit(.minutes(1))) mutating func anAnswerToAServerThatHasGone() async throws {
    let (sent, more) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue([.updateKey(isRequested: true, times: 3), .send("last"), .fire(sent), .wait(more), .close])
    let isRefused = Shared(false)
    let kernel = CountingKernel { isRefused.value ? -Int(Errno.connectionReset.rawValue) : nil }
    client = try SecureClient(trusting: ca, on: kernel)
    let reader = Reader()
    let (client, server) = (client, server)
    try await withStream { stream in
      stream.start(for: reader)
      try await sent.wait()
      // The events of the bytes above come before those of this request.
      #expect(await client.get(from: server).status == 200)
      isRefused.value = true
      reader.demand = .max
      stream.resumeReceiving()
      stream.write([7])
      more.fire()
      await reader.waitForEnd()
      isRefused.value = false
      #expect(await client.get(from: server).status == 200)
    }
    #expect(reader.bytes == Array("last".utf8))
    #expect(reader.sendingError == .connectionLost(.receivingBody, .connectionReset))
  }

  /// The end of the output is announced by TLS, and then the server's last bytes come.
  @Test func halfClose() async throws {
    server.enqueue([.expectBytes("ab"), .expectClose, .send("last"), .close])
    let reader = Reader()
    try await withStream { stream in
      reader.demand = .max
      stream.start(for: reader)
      stream.write(Array("ab".utf8))
      stream.closeSending()
      await reader.waitForEnd()
    }
    #expect(reader.bytes == Array("last".utf8))
    #expect(server.failures == [])
  }

  /// Bytes that TLS has encrypted and the kernel has not taken are not sent.
  @Test func encryptedBytesAreNotSentYet() async throws {
    let signal = TestServer.Signal()
    server.enqueue([.wait(signal), .expectClose])
    try await withStream { stream in
      stream.start(for: Reader())
      var isEncryptedOnly = false
      for _ in 0..<100_000 where stream.unsentBytes == 0 {
        stream.write([UInt8](repeating: 7, count: 1000))
        if stream.unsentBytes == 0, !stream.isDrained { isEncryptedOnly = true }
        await Task.yield()
      }
      #expect(isEncryptedOnly && stream.unsentBytes > 0 && !stream.isDrained)
    }
    signal.fire()
  }
}
