import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// `larkspur get`: makes one request, and copies the body from the connection to the output.
///
/// Each piece of the body is written before the next one is requested. So memory does not grow with the body, and a
/// slow output slows the server down.
struct Get {
  private let options: GetOptions
  private let loop: ClientLoop
  private let start: Deadline

  init(_ options: GetOptions, on loop: ClientLoop) {
    self.options = options
    self.loop = loop
    start = loop.kernel.now()
  }

  func run() async -> ExitStatus {
    do throws(CommandFailure) {
      let url = try RequestURL.parse(options.url)
      let route = try ProxySetUp.route(options, to: url)
      let request = try GetRequest(options, to: url, through: route?.proxy)
      let security = try TLSSetUp.security(options.tls, for: url)
      let deadline = deadline(after: options.maxTime)
      let output = try FileOutput(path: options.output, deadline: deadline)
      CaughtSignal.interruptCalls(at: deadline)
      do throws(CommandFailure) {
        try await transfer(request, from: url, by: security, via: route, to: output)
        try output.commit()
      } catch {
        output.abandon()
        throw error
      }
      return .success
    } catch {
      if let message = error.message { Console.complain(message) }
      return error.status
    }
  }

  private func transfer(
    _ request: GetRequest, from url: RequestURL, by security: Security?, via route: ProxyRoute?, to output: FileOutput
  ) async throws(CommandFailure) {
    let log = options.isVerbose ? VerboseLog(since: start, of: request) : nil
    let connection = try await connect(to: url, by: security, via: route, log)
    defer { connection.close() }
    let peer = Peer(url, through: route?.proxy, address: connection.address)
    // Cancelling the task, as a signal does, cancels the operation on the connection.
    try await connection.cancelledWithTask { () async throws(CommandFailure) in
      let exchange = try await translating(peer) { () async throws(TransportError) in
        try await connection.send(request.head, body: request.body, deadline: deadline(after: options.maxTime))
      }
      log?.writeResponse(exchange.headBytes)
      if options.showsHead { try output.write(exchange.headBytes.span) }
      if options.failsOnHTTPError, exchange.status >= 400 {
        throw CommandFailure(.httpError, "\(peer): the server answered with \(statusLine(of: exchange))")
      }
      try await receiveBody(of: exchange, from: peer, to: output)
    }
  }

  private func connect(
    to url: RequestURL, by security: Security?, via route: ProxyRoute?, _ log: VerboseLog?
  ) async throws(CommandFailure) -> Connection {
    let deadline = min(deadline(after: options.connectTimeout), deadline(after: options.maxTime))
    let observer: Connection.Observer? = log.map { log in { log.write($0, at: $1) } }
    return try await translating(Peer(url, through: route?.proxy, address: nil)) { () async throws(TransportError) in
      try await Connection.open(
        host: url.host, port: url.port, security: security, via: route, on: loop, deadline: deadline,
        observer: observer)
    }
  }

  private func receiveBody(
    of exchange: Exchange, from peer: Peer, to output: FileOutput
  ) async throws(CommandFailure) {
    var progress: ProgressBar?
    // The events of -v and the bar would overwrite each other.
    if output.isFile, !options.isVerbose, OpenFile.standardError.isTerminal {
      progress = ProgressBar(total: exchange.bodyBytesExpected, on: .standardError, now: loop.kernel.now())
    }
    defer { progress?.finish(now: loop.kernel.now()) }
    var failure: CommandFailure?
    var isOver = false
    while !isOver {
      isOver = try await translating(peer) { () async throws(TransportError) in
        try await !exchange.receiveData { piece in
          do throws(CommandFailure) {
            try output.write(piece)
            progress?.advance(by: piece.count, now: loop.now)
          } catch {
            failure = error
          }
        }
      }
      if let failure { throw failure }
    }
  }

  private func statusLine(of exchange: Exchange) -> String {
    let reason = Format.visible(exchange.headBytes[exchange.head.reason])
    return "\(exchange.status)" + (reason.isEmpty ? "" : " \(reason)")
  }

  private func deadline(after timeout: Duration?) -> Deadline {
    timeout.map { start.advanced(by: $0) } ?? .never
  }

  /// Runs an operation of the transport, and turns its error into the message to the user.
  private func translating<T>(
    _ peer: Peer, _ body: () async throws(TransportError) -> T
  ) async throws(CommandFailure) -> T {
    do throws(TransportError) {
      return try await body()
    } catch {
      throw peer.failure(error, connectTimeout: options.connectTimeout, maxTime: options.maxTime)
    }
  }
}
