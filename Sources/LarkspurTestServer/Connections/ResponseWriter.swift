/// Writes a response to the wire: head, framing, body.
struct ResponseWriter {
  /// A defect of a route's response, or an error that the route threw while the response was written.
  struct RouteFailure: Error {
    let message: String
  }

  let wire: Wire
  let core: ServerCore

  /// Writes the response.
  ///
  /// - Returns: Whether the connection can take the next request.
  /// - Throws: `Wire.Failure` or `RouteFailure`.
  func write(_ response: TestServer.Response, to request: TestServer.Request) throws -> Bool {
    try write(response.interim, to: request)
    // RFC 9110, section 6.4.1, and RFC 9112, section 6.3.
    let forbidsBody = response.status == 204 || response.status == 304 || response.status < 200
    let sendsBody = request.method != "HEAD" && !forbidsBody
    let framing = framing(of: response, request)
    let hasOwnFraming = response.fields["Content-Length"] != nil || response.fields["Transfer-Encoding"] != nil
    var keepsAlive = request.asksToKeepAlive && !response.closesConnection
    if response.fields.contains(token: "close", in: "Connection") { keepsAlive = false }

    var fields = response.fields
    if !hasOwnFraming && !forbidsBody {
      switch framing {
      case .length: fields.add("Content-Length", String(response.body.count ?? 0))
      case .chunked: fields.add("Transfer-Encoding", "chunked")
      case .untilClose: keepsAlive = keepsAlive && !sendsBody
      }
    }
    let announced = fields["Content-Length"].flatMap { Int($0) }
    if sendsBody, let announced, let count = response.body.count, announced != count { keepsAlive = false }
    if fields["Connection"] == nil {
      if !keepsAlive { fields.add("Connection", "close") }
      if keepsAlive, request.version == "HTTP/1.0" { fields.add("Connection", "keep-alive") }
    }
    let head = Array((statusLine(response.status, response.reason) + lines(fields) + "\r\n").utf8)
    guard sendsBody else {
      try wire.send(head)
      return keepsAlive
    }

    let writer = TestServer.BodyWriter(wire, core, hasOwnFraming ? .untilClose : framing)
    switch response.body {
    case .bytes(let bytes):
      if case .chunked = framing, !hasOwnFraming {
        try wire.send(head)
        try writer.write(bytes)
      } else {
        // One send, so that a small response is one segment.
        try wire.send(head + bytes)
      }
    case .content(let range):
      try wire.send(head)
      try writer.writeContent(range)
    case .stream(_, let body):
      try wire.send(head)
      do {
        try body(writer)
      } catch let failure as Wire.Failure {
        throw failure
      } catch {
        throw RouteFailure(message: "its body ended with an error: \(error)")
      }
      if let announced, writer.count != announced { keepsAlive = false }
    }
    try writer.end(trailers: response.trailers)
    return keepsAlive
  }

  /// Writes interim responses. RFC 9110, section 15.2: HTTP/1.0 clients get no interim responses.
  func write(_ interim: [TestServer.Interim], to request: TestServer.Request) throws {
    guard request.version != "HTTP/1.0" else { return }
    for response in interim {
      try wire.send(Array((statusLine(response.status, nil) + lines(response.fields) + "\r\n").utf8))
    }
  }

  /// Returns the framing that the request's version and the body allow.
  private func framing(of response: TestServer.Response, _ request: TestServer.Request) -> TestServer.Framing {
    var framing = response.framing
    if framing == .length, response.body.count == nil { framing = .chunked() }
    if case .chunked = framing, request.version == "HTTP/1.0" { framing = .untilClose }
    return framing
  }

  private func statusLine(_ status: Int, _ reason: String?) -> String {
    "HTTP/1.1 \(status) \(reason ?? reasonPhrase(status))\r\n"
  }
}
