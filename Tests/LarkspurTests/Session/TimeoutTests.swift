import Foundation
import Glibc
import Larkspur
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import Synchronization
import Testing

/// Tests which times count towards a task's timeouts. A test that expects a timeout just waits for it; if it expects it
/// in a phase, it tries longer timeouts until the machine is fast enough to reach the phase. A test that expects none takes longer in total than the timeout, and has seconds to spare in each part.
@Suite(.timeLimit(.minutes(2))) struct TimeoutTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func request(_ path: String, timeout: TimeInterval? = nil) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: server.url(path))))
    if let timeout { request.timeoutInterval = timeout }
    return request
  }

  private func session(
    request: TimeInterval = 100, resource: TimeInterval = 1000, connections: Int = 6,
    delegate: (any URLSessionDelegate)? = nil
  ) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = request
    configuration.timeoutIntervalForResource = resource
    configuration.httpMaximumConnectionsPerHost = connections
    return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  }

  private func code(_ load: () async throws -> Void) async -> URLError.Code? {
    do {
      try await load()
      return nil
    } catch {
      return (error as? URLError)?.code
    }
  }

  /// Returns the phase that the error of a timeout names, and expects the same in what `print` shows of the error.
  private func phase(_ load: () async throws -> Void) async -> TransportError.Phase? {
    do {
      try await load()
      return nil
    } catch {
      guard let error = error as? URLError, error.code == .timedOut else { return nil }
      let phase: TransportError.Phase? =
        switch error.transportError {
        case .timedOut(let phase, _)?: phase
        case .tls(let failure)? where failure.problem == .handshakeTimedOut: .securing
        default: nil
        }
      if let transportError = error.transportError { #expect("\(error)".contains("\"\(transportError)\"")) }
      return phase
    }
  }

  /// Returns whether a timeout ends a load in this phase. A busy machine needs a longer timeout to get there.
  private func isCutOff(
    in wanted: TransportError.Phase, _ load: (_ timeout: TimeInterval) async throws -> Void
  ) async -> Bool {
    for timeout in [0.2, 1, 5, 25] where await phase({ try await load(timeout) }) == wanted { return true }
    return false
  }

  private static let partialResponse = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"

  @Test func aRequestsFractionOfASecond() async throws {
    let session = session()
    let isCutOff = await isCutOff(in: .receivingBody) { timeout in
      server.enqueue([.expectRequest, .send(Self.partialResponse), .expectClose])
      _ = try await session.data(for: try request("/x", timeout: timeout))
    }
    #expect(isCutOff)
  }

  /// A timeout of zero or less is unset: the request's falls back to the configuration's, and the configuration's to
  /// the default.
  @Test(arguments: [0, -1.0]) func noTime(none: TimeInterval) async throws {
    let (free, load) = (session(request: none, resource: none), try request("/get", timeout: none))
    #expect(await code { _ = try await free.data(for: load) } == nil)
    server.enqueue([.expectRequest, .send(Self.partialResponse), .expectClose])
    let (bound, stalled) = (session(request: 0.2), try request("/x", timeout: none))
    #expect(await code { _ = try await bound.data(for: stalled) } == .timedOut)
  }

  /// A timeout closes the connection of the task.
  @Test func whatHasTimedOutIsClosed() async throws {
    server.enqueue([.expectRequest, .send(Self.partialResponse), .expectClose])
    let recorder = SessionRecorder()
    let session = session(request: 2.5, delegate: recorder)
    defer { session.invalidateAndCancel() }
    let task = session.dataTask(with: try request("/x"))
    task.resume()
    await recorder.waitForEnds()
    #expect(recorder.events.last == .completed(task.taskIdentifier, .timedOut))
    try await server.waitForClosedConnections(1)
    #expect(server.failures == [])
  }

  @Test func aConfigurationsFractionOfASecond() async throws {
    let isCutOff = await isCutOff(in: .awaitingHead) { timeout in
      server.enqueue([.expectRequest, .expectClose])
      _ = try await session(request: timeout).data(for: try request("/x"))
    }
    #expect(isCutOff)
  }

  @Test func theRequestsTimeCountsForMore() async throws {
    let session = session(request: 0.2)
    #expect(await code { _ = try await session.data(for: try request("/delay/800", timeout: 100)) } == nil)
    #expect(await code { _ = try await session.data(for: try request("/delay/800", timeout: .infinity)) } == nil)
  }

  @Test func aSlowDripIsNoTimeout() async throws {
    let session = session(request: 6)
    let (data, _) = try await session.data(for: try request("/drip?bytes=40&pieces=40&interval=200"))
    #expect(data.count == 40)
  }

  @Test func interimResponsesAreProgress() async throws {
    server.enqueue([
      .expectRequest, .repeat(18, [.pause(.milliseconds(300)), .send("HTTP/1.1 103 Early Hints\r\n\r\n")]),
      .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .expectClose,
    ])
    let recorder = SessionRecorder()
    let session = session(request: 5, delegate: recorder)
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.data(for: try request("/x"))
    #expect(data.count == 2)
  }

  @Test func theWholeTakesTooLong() async throws {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
      .repeat([.send("x"), .pause(.milliseconds(20))]),
    ])
    let (session, request) = (session(resource: 0.4), try request("/x", timeout: .infinity))
    #expect(await code { _ = try await session.data(for: request) } == .timedOut)
  }

  @Test func aSuspendedTaskHasTime() async throws {
    let recorder = SessionRecorder()
    let isSuspended = TestServer.Signal()
    recorder.onResponse = {
      $0.suspend()
      isSuspended.fire()
    }
    let session = session(request: 5, resource: 6, delegate: recorder)
    defer { session.invalidateAndCancel() }
    let task = session.dataTask(with: try request("/bytes/1000"))
    task.resume()
    try await isSuspended.wait()
    _ = try await URLSession(configuration: .ephemeral).data(for: try request("/delay/6500"))
    #expect(task.state == .suspended)
    task.resume()
    await recorder.waitForEnds()
    #expect(recorder.events.last == .completed(task.taskIdentifier, nil))
  }

  @Test func aDelegateMayTakeItsTime() async throws {
    let recorder = SessionRecorder()
    let proceed = DispatchSemaphore(value: 0)
    recorder.onData = { _, _ in proceed.wait() }
    let session = session(request: 5, resource: 6, delegate: recorder)
    defer { session.invalidateAndCancel() }
    let task = session.dataTask(with: try request("/bytes/10"))
    task.resume()
    await recorder.wait { $0.contains(.data(task.taskIdentifier)) }
    _ = try await URLSession(configuration: .ephemeral).data(for: try request("/delay/6500"))
    proceed.signal()
    await recorder.waitForEnds()
    #expect(recorder.events.last == .completed(task.taskIdentifier, nil))
  }

  @Test func aReaderOfBytesMayTakeItsTime() async throws {
    let session = session(request: 5, resource: 6)
    let (bytes, _) = try await session.bytes(for: try request("/bytes/300000"))
    var iterator = bytes.makeAsyncIterator()
    var count = try await iterator.next() == nil ? 0 : 1
    _ = try await URLSession(configuration: .ephemeral).data(for: try request("/delay/6500"))
    while try await iterator.next() != nil { count += 1 }
    #expect(count == 300_000)
  }

  /// Sending counts as progress, even if the server reads slowly and does not answer meanwhile.
  @Test func sendingIsProgress() async throws {
    // What the sockets hold is taken without any progress at the client: far less than is read in its time.
    let count = 32 << 20
    server.enqueue([
      .expectHead, .repeat(count >> 20, [.expectBytes(count: 1 << 20), .pause(.milliseconds(125))]),
      .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .expectClose,
    ])
    var request = try request("/x")
    request.httpMethod = "POST"
    let session = session(request: 3)
    let (data, _) = try await session.upload(for: request, from: Data(count: count))
    #expect(data.count == 2)
    #expect(server.failures == [])
  }

  @Test func aBodyThatIsNotRead() async throws {
    server.enqueue([.expectHead, .hang])
    var request = try request("/x", timeout: 0.3)
    request.httpMethod = "POST"
    let session = session()
    #expect(await phase { _ = try await session.upload(for: request, from: Data(count: 16 << 20)) } == .sending)
  }

  /// The time in the queue for a connection does not count towards the timeout of the request, with and without an
  /// observer of the task.
  @Test(arguments: [true, false]) func theQueueTakesNoTimeOfTheRequest(isObserved: Bool) async throws {
    let answers = TestServer.Signal()
    server.enqueue([
      .expectRequest, .wait(answers), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .serveRoutes,
    ])
    let session = session(connections: 1, delegate: isObserved ? SessionRecorder() : nil)
    defer { session.invalidateAndCancel() }
    let first = Task { try await session.data(for: try request("/first")) }
    try await server.waitForRequests(1)
    let others = (0..<3).map { _ in Task { try await session.data(for: try request("/get", timeout: 4)) } }
    _ = try await URLSession(configuration: .ephemeral).data(for: try request("/delay/5000"))
    answers.fire()
    #expect(try await first.value.0.count == 2)
    for other in others { #expect(try await other.value.0.isEmpty == false) }
  }

  /// The time of the resource counts in the queue, and the error names the queue. A suspended task, whose own time stands
  /// still, has the only connection.
  @Test func theQueueTakesTimeOfTheResource() async throws {
    server.enqueue([.expectRequest, .send(Self.partialResponse), .expectClose])
    let recorder = SessionRecorder()
    let isSuspended = TestServer.Signal()
    recorder.onResponse = {
      $0.suspend()
      isSuspended.fire()
    }
    let session = session(resource: 2, connections: 1, delegate: recorder)
    defer { session.invalidateAndCancel() }
    session.dataTask(with: try request("/x")).resume()
    try await isSuspended.wait()
    #expect(await phase { _ = try await session.data(for: try request("/second")) } == .queueing)
  }

  @Test func aHandshakeThatStalls() async throws {
    let server = try TestServer(tls: .init(certificate: try TestCA().issue()))
    let url = try #require(URL(string: server.url("/get")))
    let session = session()
    let isCutOff = await isCutOff(in: .securing) { timeout in
      server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: 1)])
      _ = try await session.data(for: URLRequest(url: url, timeoutInterval: timeout))
    }
    #expect(isCutOff)
  }

  /// A connection attempt that is never answered times out: the listener's queue is full, so the kernel ignores further
  /// attempts.
  @Test func aBlackHole() async throws {
    let hole = try BlackHole()
    let session = session()
    let url = try #require(URL(string: "http://127.0.0.1:\(hole.port)/"))
    let isCutOff = await isCutOff(in: .connecting) { timeout in
      _ = try await session.data(for: URLRequest(url: url, timeoutInterval: timeout))
    }
    #expect(isCutOff)
  }

  // MARK: - The limits of parts

  private func error(_ path: String, _ change: (inout URLSessionConfiguration.Timeouts) -> Void) async throws
    -> URLError
  {
    let configuration = URLSessionConfiguration.ephemeral
    change(&configuration.timeouts)
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    return try #require(
      await #expect(throws: URLError.self) { _ = try await session.data(for: try request(path)) })
  }

  @Test func partsOfAnExchange() async throws {
    server.enqueue([.expectRequest, .hang])
    let late = try await error("/") { $0.firstByte = .milliseconds(50) }
    #expect(late.code == .timedOut && late.transportError == .timedOut(.awaitingHead, limit: .firstByte))
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), .hang])
    let slow = try await error("/") { $0.lowestRate = .init(bytes: 100, over: .milliseconds(50)) }
    #expect(slow.code == .timedOut && slow.transportError == .timedOut(.receivingBody, limit: .lowestRate))
    #expect(slow.localizedDescription.contains("while receiving the body"))
  }

  @Test func aUselessLimitSendsNothing() async throws {
    let error = try await error("/get") { $0.firstByte = .zero }
    #expect(error.code == .cannotConnectToHost && error.localizedDescription.contains("timeouts.firstByte"))
    #expect(server.requests.isEmpty)
  }
}

/// A port that neither accepts nor refuses connections.
private final class BlackHole {
  let port: UInt16
  private var descriptors: [Int32] = []

  private struct Failure: Error {}

  init() throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    descriptors = [listener]
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let hasBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(listener, pointer, length) == 0 && listen(listener, 0) == 0
          && getsockname(listener, pointer, &length) == 0
      }
    }
    port = UInt16(bigEndian: address.sin_port)
    guard hasBound else { throw Failure() }
    // More connections than the queue holds.
    for _ in 0..<8 {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
      descriptors.append(descriptor)
      withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connect(descriptor, $0, length) }
      }
    }
  }

  deinit { for descriptor in descriptors { close(descriptor) } }
}
