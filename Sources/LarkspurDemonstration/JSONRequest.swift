import LarkspurConsole
import LarkspurHTTP
import LarkspurTransport

extension DemoPart {
  /// The simplest case: one request, one response.
  static let jsonRequest = DemoPart("A JSON request") { stage in
    let connection = try await stage.connect()
    defer { connection.close() }
    return try await connection.cancelledWithTask {
      let exchange = try await stage.send(
        stage.request("/headers", [Field("Accept", "application/json")]), over: connection)
      stage.say("GET /headers")
      let reason = Format.visible(exchange.headBytes[exchange.head.reason])
      stage.say("\(exchange.status) \(reason)")
      for name: StaticString in ["content-type", "content-length"] {
        stage.say("\(name): \(exchange.value(of: name) ?? "(missing)")")
      }
      let body = try await exchange.collectBody(bytesMax: 1 << 16)
      stage.say(String(decoding: body, as: UTF8.self).split(separator: "\n").joined(separator: "\n   "))
      try DemoFailure.unless(exchange.status == 200, "the status is \(exchange.status)")
      // The server sends the request's fields back, so the body shows whether they arrived as they were sent.
      let text = String(decoding: body, as: UTF8.self)
      try DemoFailure.unless(text.contains("larkspur/"), "the server has not seen our User-Agent")
      return "\(exchange.status) \(reason), \(body.count) bytes of JSON"
    }
  }
}
