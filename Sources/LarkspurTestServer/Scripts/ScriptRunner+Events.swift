extension ScriptRunner {
  mutating func startEvents(_ ownFields: TestServer.Fields, _ ownFraming: TestServer.Framing) throws(Stop) {
    guard eventWriter == nil else { throw .failed("an event stream has not ended yet") }
    var framing = ownFraming == .length ? .chunked() : ownFraming
    if request?.version == "HTTP/1.0" { framing = .untilClose }
    var fields = TestServer.Fields()
    for (name, value) in [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]
    where ownFields[name] == nil {
      fields.add(name, value)
    }
    for field in ownFields { fields.add(field.name, field.value) }
    if framing != .untilClose { fields.add("Transfer-Encoding", "chunked") }
    if fields["Connection"] == nil, framing == .untilClose || request?.asksToKeepAlive == false {
      fields.add("Connection", "close")
    }
    let head = "HTTP/1.1 200 OK\r\n\(lines(fields))\r\n"
    let wire = wire
    try sending { try wire.send(Array(head.utf8)) }
    eventWriter = TestServer.BodyWriter(wire, connection.core, framing)
    endsWithConnection = framing == .untilClose
  }

  mutating func sendEvents(
    _ events: [TestServer.StreamEvent], _ lineEnd: String, _ pieceBytes: Int
  ) throws(Stop) {
    if eventWriter == nil { try startEvents([:], .chunked()) }
    guard let writer = eventWriter else { return }
    var rest = Array(events.map { $0.text(lineEnd: lineEnd) }.joined().utf8)[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(pieceBytes))
      try sending { try writer.write(piece) }
      rest = rest.dropFirst(piece.count)
    }
  }

  mutating func endEvents() throws(Stop) {
    guard let writer = eventWriter else { throw .failed("no event stream has been started") }
    eventWriter = nil
    try sending { try writer.end(trailers: [:]) }
    if endsWithConnection { wire.close() }
  }
}
