import LarkspurBytes
import LarkspurConsole
import LarkspurTestServer
import LarkspurTransport

extension DemoPart {
  /// A body whose pieces arrive as soon as the server has sent them. The server sends each line only after the client
  /// has shown the one before: a client that held anything back would wait for ever.
  static let chunkedStream = DemoPart("A stream, line by line") { stage in
    let lines = ["Up in the clear morning", "a lark begins its song,", "one line at a time,", "and is heard at once."]
    let shown = lines.map { _ in TestServer.Signal() }
    stage.server.route("GET", "/song") { _ in
      TestServer.Response(
        fields: ["Content-Type": "text/plain"],
        body: .stream { writer in
          for (line, signal) in zip(lines, shown) {
            try writer.write(line + "\n")
            try writer.wait(signal)
            // The pause only makes the stream visible.
            try writer.pause(.milliseconds(80))
          }
        }, framing: .chunked())
    }
    let connection = try await stage.connect()
    defer { connection.close() }
    let start = stage.now
    var received: [String] = []
    try await connection.cancelledWithTask {
      let exchange = try await stage.send(try stage.request("/song"), over: connection)
      stage.say("GET /song (\(exchange.value(of: "transfer-encoding") ?? "not chunked"))")
      var unfinished: [UInt8] = []
      func take(_ piece: Span<UInt8>) {
        for index in piece.indices {
          guard piece[index] == UInt8(ascii: "\n") else {
            unfinished.append(piece[index])
            continue
          }
          let line = String(decoding: unfinished, as: UTF8.self)
          let time = Format.decimal(Format.milliseconds(stage.now.duration(since: start)))
          stage.say("\(Format.padded(time, to: 6, atEnd: false)) ms  \(line)")
          unfinished.removeAll()
          if received.count < shown.count { shown[received.count].fire() }
          received.append(line)
        }
      }
      while try await exchange.receiveData(take) {}
    }
    try DemoFailure.unless(received == lines, "other lines came: \(received)")
    return "\(received.count) lines, each as it was sent"
  }
}
