import LarkspurIO

/// One connection, confined to its thread: runs its script, then serves the ordinary routes.
final class Connection {
  let number: Int
  let core: ServerCore
  private var requestsRead = 0

  init(_ number: Int, _ core: ServerCore) {
    self.number = number
    self.core = core
  }

  /// The state of a connection after a part of its work.
  enum Outcome {
    /// The connection can take the next request.
    case open
    /// The connection is closed or broken.
    case over
  }

  /// Serves the connection to its end. On return no reference to the socket is left, and the socket is closed.
  func run(_ script: TestServer.Script?) {
    let (core, number) = (core, number)
    guard let socket = core.socket(number) else { return }
    let wire = Wire(consume socket) { core.forgetSocket(number) }
    var outcome = Outcome.open
    if core.tls != nil, script?.startsBeforeHandshake != true { outcome = secure(wire) }
    if let script, outcome == .open { outcome = runScript(script, on: wire) }
    if outcome == .open { _ = serveRoutes(wire) }
    wire.close()
  }

  func runScript(
    _ script: TestServer.Script, on wire: Wire, answering request: TestServer.Request? = nil, depth: Int = 0
  ) -> Outcome {
    var runner = ScriptRunner(self, wire, depth: depth)
    runner.request = request
    return runner.run(script)
  }

  func reader(_ wire: Wire) -> RequestReader {
    RequestReader(wire: wire, headBytesMax: core.options.headBytesMax, bodyBytesKept: core.options.bodyBytesKept)
  }

  /// Reads a head and adds the connection's number, the request's ordinal and whether TLS is in use.
  func readHead(_ wire: Wire) throws(RequestReader.Failure) -> TestServer.Request {
    var request = try reader(wire).readHead()
    requestsRead += 1
    request.connection = number
    request.ordinal = requestsRead
    request.isSecure = wire.isSecure
    return request
  }

  // MARK: Ordinary routes

  /// Answers requests by the routes.
  ///
  /// - Parameters:
  ///   - requestsMax: The maximum number of requests to answer.
  ///   - depth: The number of scripts that have called each other so far.
  func serveRoutes(_ wire: Wire, requestsMax: Int = .max, depth: Int = 0) -> Outcome {
    var left = requestsMax
    while left > 0 {
      left -= 1
      do {
        if try serveRequest(wire, depth: depth) == .over { return .over }
      } catch {
        // The client has gone, or the server stops: no failure of a route.
        wire.close()
        return .over
      }
    }
    return .open
  }

  private func serveRequest(_ wire: Wire, depth: Int) throws -> Outcome {
    var request: TestServer.Request
    do {
      request = try readHead(wire)
      if RequestReader.announcesBody(request), request.version == "HTTP/1.1",
        request.fields.contains(token: "100-continue", in: "Expect")
      {
        try wire.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
      }
      if let uploads = core.uploads(at: request.path) { return try serveUpload(request, uploads, on: wire) }
      try reader(wire).readBody(of: &request)
    } catch RequestReader.Failure.malformed(let message) {
      return try refuse(wire, 400, message)
    } catch RequestReader.Failure.headTooLarge {
      return try refuse(wire, 431, "the head is longer than \(core.options.headBytesMax) bytes")
    }
    core.record(request)
    switch core.router.answer(&request) {
    case .response(let response, let delay, let complaint):
      if let complaint { fail("\(request.method) \(request.target): \(complaint)") }
      // A client that has ended its side no longer waits for the response.
      if delay > .zero, try wire.waitForPeerEnd(until: core.deadline(after: delay)) { throw Wire.Failure.ended }
      return try respond(response, to: request, on: wire)
    case .script(let script):
      return runScript(script, on: wire, answering: request, depth: depth + 1)
    }
  }

  func respond(_ response: TestServer.Response, to request: TestServer.Request, on wire: Wire) throws -> Outcome {
    do {
      let keepsAlive = try ResponseWriter(wire: wire, core: core).write(response, to: request)
      if keepsAlive { return .open }
      wire.closeAfterPeer()
    } catch let failure as ResponseWriter.RouteFailure {
      fail("\(request.method) \(request.target): \(failure.message)")
      // A reset shows the client that the body is not complete.
      wire.reset()
    }
    return .over
  }

  /// Answers a request that cannot be parsed, and records a failure: the client under test has a bug.
  private func refuse(_ wire: Wire, _ status: Int, _ message: String) throws -> Outcome {
    fail("malformed request: \(message)")
    let request = TestServer.Request(
      connection: number, ordinal: requestsRead, method: "GET", target: "/", version: "HTTP/1.1", fields: [:])
    var response = TestServer.Response.json(["error": .string(message)], status: status)
    response.closesConnection = true
    return try respond(response, to: request, on: wire)
  }

  func fail(_ message: String) { core.fail("connection \(number), \(message)") }
}
