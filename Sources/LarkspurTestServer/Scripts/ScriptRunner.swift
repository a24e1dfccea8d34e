import LarkspurCoding

/// Runs a script on a connection's thread.
struct ScriptRunner {
  /// The reason why a script stops early.
  enum Stop: Error {
    /// An expectation was not met, or a step is not possible.
    case failed(String)
    /// The client has gone or the server stops, and the script did not expect anything else.
    case quiet
    /// The ordinary routes take over.
    case routes
  }

  /// The maximum depth of scripts and routes that start each other. Without it a client could overflow the stack.
  private static let depthMax = 8

  let connection: Connection
  let wire: Wire
  private let depth: Int
  /// The last request that was read.
  var request: TestServer.Request?
  /// The number of the record of `request`.
  private var recordNumber = 0
  /// The writer of the event stream that has been started, or `nil` if there is none.
  var eventWriter: TestServer.BodyWriter?
  /// Whether the end of the connection ends that event stream.
  var endsWithConnection = false
  /// The number of the step and of the steps around it, the outermost first.
  var path: [Int] = []
  var stepName = ""

  init(_ connection: Connection, _ wire: Wire, depth: Int) {
    self.connection = connection
    self.wire = wire
    self.depth = depth
  }

  /// - Returns: `.open` if the ordinary routes take over, or `.over` if the connection is closed.
  mutating func run(_ script: TestServer.Script) -> Connection.Outcome {
    do throws(Stop) {
      try run(script, mayEndAtStart: false)
    } catch {
      switch error {
      case .routes: return .open
      case .quiet: break
      case .failed(let message):
        connection.fail("script step \(path.map(String.init).joined(separator: ".")) (\(stepName)): \(message)")
      }
    }
    if wire.hasHalfClosed { wire.closeAfterPeer() } else { wire.close() }
    return .over
  }

  private mutating func run(_ script: TestServer.Script, mayEndAtStart: Bool) throws(Stop) {
    for (index, step) in script.steps.enumerated() {
      path.append(index + 1)
      stepName = step.name
      try perform(step.kind, mayEnd: mayEndAtStart && index == 0)
      path.removeLast()
    }
  }

  /// Does one step. If `mayEnd`, the connection may end in its place without a failure.
  mutating func perform(_ step: TestServer.Step.Kind, mayEnd: Bool) throws(Stop) {
    switch step {
    case .expectRequest(let method, let target):
      try readHead(mayEnd: mayEnd)
      try readBody()
      try compare("method", request?.method, method)
      try compare("target", request?.target, target)
    case .expectHead:
      try readHead(mayEnd: mayEnd)
    case .expectBody:
      try readBody()
    case .expectBytes(let bytes):
      try expect(bytes, mayEnd: mayEnd)
    case .expectCount(let count):
      var left = count
      while left > 0 { left -= try take(atMost: left, had: count - left, of: count, mayEnd: mayEnd).count }
    case .expectClose:
      try expectClose()
    case .send(let bytes, let pieceBytes, let gap):
      try send(bytes, pieceBytes, gap)
    case .sendContent(let range):
      try sending {
        try Content.forEachRun(in: range) { try wire.send($0) }
      }
    case .respond(let response):
      try respond(response)
    case .setSendBuffer(let bytes):
      wire.setSendBuffer(bytes: bytes)
    case .wait(let signal):
      guard connection.core.wait(for: signal) else { throw .quiet }
    case .fire(let signal):
      signal.fire()
    case .pause(let duration):
      try pause(duration)
    case .beforeHandshake:
      // The connection has left the handshake to the script.
      guard path == [1], depth == 0 else { throw .failed("it is to be the first step of a connection's script") }
    case .handshake(let fault):
      guard connection.core.tls != nil else { throw .failed("the server has been started without TLS") }
      guard connection.secure(wire, fault) == .open else { throw .quiet }
    case .closeNotify:
      wire.closeNotify()
    case .closeWithoutNotify:
      wire.closeWithoutNotify()
    case .oddities(let oddity, let count):
      try perform(oddity, count)
    case .sendBelowTLS(let bytes):
      try sending { try wire.send(bytes, above: 0) }
    case .cut(let count, let end):
      wire.fault.cut = (max(count, 0), end)
    case .setSegment(let bytes):
      wire.fault.segmentBytesMax = max(bytes, 1)
    case .webSocket(let answer, let steps):
      try runWebSocket(answer, steps, mayEnd: mayEnd)
    case .startEvents(let fields, let framing):
      try startEvents(fields, framing)
    case .events(let events, let lineEnd, let pieceBytes):
      try sendEvents(events, lineEnd, pieceBytes)
    case .endEvents:
      try endEvents()
    case .close:
      wire.close()
    case .reset:
      wire.reset()
    case .halfClose:
      wire.halfClose()
    case .hang:
      try sending { _ = try wire.waitForPeerEnd() }
    case .serveRoutes(nil):
      throw .routes
    case .serveRoutes(let requestsMax?):
      guard depth < Self.depthMax else { throw .failed("scripts and routes start each other without end") }
      let outcome = connection.serveRoutes(wire, requestsMax: requestsMax, depth: depth)
      guard outcome == .open else { throw .quiet }
    case .repeat(let count?, let script):
      for _ in 0..<max(count, 0) { try run(script, mayEndAtStart: false) }
    case .repeat(nil, let script):
      while true {
        // A round that touches neither the connection nor a signal would never notice the stop.
        if connection.core.isStopping { throw .quiet }
        try run(script, mayEndAtStart: true)
      }
    }
  }

  // MARK: Expectations

  mutating func readHead(mayEnd: Bool) throws(Stop) {
    do {
      let request = try connection.readHead(wire)
      self.request = request
      recordNumber = connection.core.record(request)
    } catch .endedInHead(bytes: 0) where mayEnd {
      throw .quiet
    } catch {
      throw failed(error)
    }
  }

  mutating func readBody() throws(Stop) {
    guard var request else { throw .failed("no head has been read that could announce a body") }
    do {
      try connection.reader(wire).readBody(of: &request)
    } catch {
      throw failed(error)
    }
    self.request = request
    connection.core.amendRequest(recordNumber, with: request)
  }

  private func failed(_ failure: RequestReader.Failure) -> Stop {
    switch failure {
    case .endedInHead(bytes: 0): .failed("no request came before \(theEnd)")
    case .endedInHead(let bytes): .failed("only \(bytes) bytes of a head came before \(theEnd)")
    case .endedInBody: .failed("the body was not whole before \(theEnd)")
    case .headTooLarge: .failed("the head is longer than \(connection.core.options.headBytesMax) bytes")
    case .malformed(let message): .failed("malformed request: \(message)")
    }
  }

  var theEnd: String {
    connection.core.isStopping
      ? "the server was stopped" : wire.isOpen ? "the connection ended" : "the script closed it"
  }

  private func compare(_ what: String, _ value: String?, _ expected: String?) throws(Stop) {
    guard let value, let expected, value != expected else { return }
    throw .failed("the \(what) is \(value), not \(expected)")
  }

  private func take(atMost left: Int, had: Int, of count: Int, mayEnd: Bool) throws(Stop) -> ArraySlice<UInt8> {
    do {
      return try wire.take(atMost: left)
    } catch {
      if mayEnd, had == 0 { throw .quiet }
      throw .failed("\(had) bytes of \(count) came before \(theEnd)")
    }
  }

  private func expect(_ bytes: [UInt8], mayEnd: Bool) throws(Stop) {
    var offset = 0
    while offset < bytes.count {
      let came = try take(atMost: bytes.count - offset, had: offset, of: bytes.count, mayEnd: mayEnd)
      let wanted = bytes[offset..<offset + came.count]
      if let different = zip(came, wanted).enumerated().first(where: { $0.element.0 != $0.element.1 })?.offset {
        throw .failed(
          "byte \(offset + different) is different: \(quoted(came.dropFirst(different))) came, not "
            + quoted(wanted.dropFirst(different)))
      }
      offset += came.count
    }
  }

  private func expectClose() throws(Stop) {
    let came: ArraySlice<UInt8>
    do {
      came = try wire.take(atMost: 120)
    } catch .closed {
      throw .failed("the script has closed the connection itself")
    } catch {
      if connection.core.isStopping { throw .failed("the client had not closed when the server was stopped") }
      return
    }
    throw .failed("the client was to close, and sent \(quoted(came))")
  }

  // MARK: Sending

  /// Sends. An error means that the client has gone, and ends the script quietly, unless the script itself has closed.
  func sending(_ body: () throws -> Void) throws(Stop) {
    do {
      try body()
    } catch Wire.Failure.closed {
      throw .failed("the script has closed the connection already")
    } catch let failure as ResponseWriter.RouteFailure {
      throw .failed(failure.message)
    } catch WebSocketChannel.Failure.wrong(let message) {
      throw .failed(message)
    } catch let error as CodingError {
      throw .failed("the compression failed: \(error)")
    } catch {
      throw .quiet
    }
  }

  private func send(_ bytes: [UInt8], _ pieceBytes: Int, _ gap: Duration) throws(Stop) {
    var rest = bytes[...]
    while !rest.isEmpty {
      if gap > .zero, rest.startIndex > 0 { try pause(gap) }
      let piece = rest.prefix(pieceBytes)
      try sending { try wire.send(piece.span) }
      rest = rest.dropFirst(piece.count)
    }
  }

  private func perform(_ oddity: TLSLayer.Oddity, _ count: Int) throws(Stop) {
    guard let layer = wire.tls else { throw .failed("there is no TLS on the connection") }
    for _ in 0..<max(count, 0) {
      do {
        try layer.perform(oddity, on: wire)
      } catch .closed {
        throw .failed("the script has closed the connection already")
      } catch .insecure(let message) {
        throw .failed(message)
      } catch {
        throw .quiet
      }
    }
  }

  private func respond(_ response: TestServer.Response) throws(Stop) {
    let request =
      request
      ?? TestServer.Request(
        connection: connection.number, ordinal: 0, method: "GET", target: "/", version: "HTTP/1.1", fields: [:])
    let writer = ResponseWriter(wire: wire, core: connection.core)
    try sending { _ = try writer.write(response, to: request) }
  }

  private func pause(_ duration: Duration) throws(Stop) {
    guard connection.core.pause(until: connection.core.deadline(after: duration)) else { throw .quiet }
  }
}
