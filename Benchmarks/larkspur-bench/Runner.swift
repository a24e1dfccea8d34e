import Glibc
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// An error in a response.
struct Failure: Error, CustomStringConvertible {
  var description: String
}

/// Makes the requests of a workload, all on one loop.
final class Runner {
  private let arguments: Arguments
  private let workload: Workload
  private let loop: ClientLoop
  private let head: RequestHead
  private let wanted: PoolRequest
  /// The TLS settings, or `nil` without TLS.
  private let security: Security?
  /// Whether there has been a connection, whose session later ones can resume.
  private var hasOpened = false
  /// The connections that live longer than a request.
  private var connections: [Connection] = []
  /// The pool, or `nil` if the requests do not use one.
  private let pool: Pool?
  private let endpoint: Endpoint?

  init(_ arguments: Arguments, on loop: ClientLoop) throws {
    self.arguments = arguments
    workload = arguments.workload
    self.loop = loop
    security = try arguments.caFile.map { try Self.security($0, resumes: arguments.workload.lifetime == .resumed) }
    var options = Pool.Options()
    options.limits.perEndpointMax = arguments.workload.connections / arguments.workload.depth
    options.limits.pipelineDepth = arguments.workload.depth
    if arguments.workload.lifetime == .idle { options.limits.perEndpointMax = .max }
    if [.full, .resumed].contains(arguments.workload.lifetime) { options.limits.requestsMax = 1 }
    options.limits.totalMax = .max
    pool = arguments.usesPool ? Pool(on: loop, options: options) : nil
    endpoint = pool?.endpoint(for: Route(host: arguments.host, port: arguments.port, security: security))
    // Performance: written once and sent often, like the request of raw.c, and like the request that a curl handle
    // keeps.
    var writer = try RequestWriter(method: "GET", target: workload.path, host: arguments.host)
    try writer.field("Accept", "*/*")
    try writer.field("User-Agent", "larkspur")
    head = writer.finish()
    wanted = PoolRequest(head)
  }

  /// Opens the connections that are kept for the whole run.
  func prepare() async throws {
    guard workload.lifetime == .kept, pool == nil else { return }
    for _ in 0..<min(workload.connections, arguments.requests) { connections.append(try await open()) }
  }

  func run(_ count: Int) async throws {
    if let pool, let endpoint { return try await run(count, through: pool, endpoint) }
    switch workload.lifetime {
    case .kept where workload.connections == 1:
      let connection = connections[0]
      try await connection.cancelledWithTask {
        for _ in 0..<count { try await request(over: connection) }
      }
    case .kept:
      try await runConcurrently(count)
    case .full, .resumed:
      for _ in 0..<count { try await requestOverNewConnection().close() }
    case .idle:
      for _ in 0..<count { connections.append(try await requestOverNewConnection()) }
    }
  }

  private func run(_ count: Int, through pool: Pool, _ endpoint: Endpoint) async throws {
    if workload.lifetime == .idle { return try await idle(count, in: pool, endpoint) }
    guard workload.connections > 1 else {
      return try await pool.cancelledWithTask { slot in
        for _ in 0..<count { try await request(through: pool, endpoint, slot) }
      }
    }
    let left = Counter(count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<workload.connections {
        let lane = PoolLane(self, pool, endpoint)
        group.addTask {
          try await lane.pool.cancelledWithTask { slot in
            while left.take() { try await lane.runner.request(through: lane.pool, lane.endpoint, slot) }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Makes requests that all keep their connection until each has one of its own.
  private func idle(_ count: Int, in pool: Pool, _ endpoint: Endpoint) async throws {
    var running: [Running] = []
    for _ in 0..<(count + pool.counts.idle) {
      let exchange = Running(try await pool.start(wanted, with: endpoint, in: RequestSlot(of: pool)))
      while try await exchange.running.exchange.receiveData({ _ in }) {}
      running.append(exchange)
    }
  }

  private func request(through pool: Pool, _ endpoint: Endpoint, _ slot: RequestSlot) async throws {
    let running = try await pool.start(wanted, with: endpoint, in: slot)
    let received = try await receive(running.exchange)
    guard running.exchange.status == 200, received == workload.bodyBytes else {
      throw Failure(description: "status \(running.exchange.status), \(received) bytes of body")
    }
  }

  /// Receives the body and returns its length.
  @inline(__always)
  private func receive(_ exchange: Exchange) async throws -> Int {
    guard !workload.intoFile else { return try await receiveIntoFile(exchange) }
    var received = 0
    while try await exchange.receiveData({ received += $0.count }), exchange.isReceiving {}
    return received
  }

  /// Receives the body into a file that is unlinked at once.
  private func receiveIntoFile(_ exchange: Exchange) async throws -> Int {
    guard let folder = getenv("TMPDIR") else { throw Failure(description: "TMPDIR is not set") }
    let path = "\(String(cString: folder))/larkspur-bench-\(getpid())"
    let file = try OpenFile(creating: path)
    unlink(path)
    var received = 0
    repeat {
      let count = try await TaskCallback.awaiting { (callback) throws(TransportError) in
        try exchange.takeData(into: file, for: callback)
      }
      received += count
    } while exchange.isReceiving
    return received
  }

  func close() {
    pool?.shutDown()
    for connection in connections { connection.close() }
  }

  private static func security(_ caFile: String, resumes: Bool) throws -> Security {
    guard let roots = Certificate.read(try OpenFile(reading: caFile).readToEnd()) else {
      throw Failure(description: "\(caFile) holds no certificate that could be read")
    }
    var configuration = TLSConfiguration()
    configuration.roots = .only(roots)
    configuration.resumesSessions = resumes
    return Security(try TLSContext(configuration))
  }

  private func open() async throws -> Connection {
    try await Connection.open(
      host: arguments.host, port: arguments.port, security: security, on: loop)
  }

  private func requestOverNewConnection() async throws -> Connection {
    let connection = try await open()
    // The first connection has no session to resume.
    if workload.lifetime == .resumed {
      if hasOpened, connection.handshake?.isResumed != true {
        throw Failure(description: "a connection did not resume a session")
      }
      hasOpened = true
    }
    try await connection.cancelledWithTask { try await request(over: connection) }
    if workload.lifetime == .idle { connection.forgetResponse() }
    return connection
  }

  private func request(over connection: Connection) async throws {
    let exchange = try await connection.send(head)
    let received = try await receive(exchange)
    guard exchange.status == 200, received == workload.bodyBytes else {
      throw Failure(description: "status \(exchange.status), \(received) bytes of body")
    }
  }

  /// Makes requests on all connections. Each connection makes its next request as soon as the last one is answered.
  private func runConcurrently(_ count: Int) async throws {
    let left = Counter(count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for connection in connections {
        let lane = Lane(self, connection)
        group.addTask {
          try await lane.connection.cancelledWithTask {
            while left.take() { try await lane.runner.request(over: lane.connection) }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

/// A counter shared by the tasks of one loop. Only the loop's thread uses it, so it needs no atomics.
private final class Counter: @unchecked Sendable {
  private var left: Int
  init(_ left: Int) { self.left = left }
  func take() -> Bool {
    left -= 1
    return left >= 0
  }
}

private final class Running {
  let running: RunningExchange
  init(_ running: consuming RunningExchange) { self.running = running }
}

private final class Lane: @unchecked Sendable {
  let runner: Runner
  let connection: Connection
  init(_ runner: Runner, _ connection: Connection) {
    self.runner = runner
    self.connection = connection
  }
}

private final class PoolLane: @unchecked Sendable {
  let runner: Runner
  let pool: Pool
  let endpoint: Endpoint
  init(_ runner: Runner, _ pool: Pool, _ endpoint: Endpoint) {
    self.runner = runner
    self.pool = pool
    self.endpoint = endpoint
  }
}
