// WebSockets. Scripts do the rest.
//
//   /websocket/echo           sends each message back; chooses the first subprotocol that the client offers, and
//                             compression if the client offers it and ?deflate=0 does not forbid it
//   /websocket/messages/N     N text messages, "message 1" to "message N", then a Close with code 1000
//   /websocket/close/CODE     a Close with this code, allowed or not, and ?reason=TEXT

let webSocketRoutes: [Router.Route] = [
  Router.Route("GET", "/websocket/echo") { request in
    let offered = request.fields.values("Sec-WebSocket-Protocol").flatMap { $0.split(separator: ",") }
    let answer = TestServer.WebSocketAnswer(
      subprotocols: offered.prefix(1).map { trimmed($0) },
      deflate: request.query["deflate"] == "0" ? nil : TestServer.WebSocketDeflate())
    return .script([.webSocket([.echo], answer: answer)])
  },
  Router.Route("GET", "/websocket/messages/{count}") { request in
    let count = try request.number("count", in: 0...100_000)
    let messages = (0..<count).map { TestServer.WebSocketStep.send("message \($0 + 1)") }
    return .script([.webSocket(messages + [.close(1000), .drain])])
  },
  Router.Route("GET", "/websocket/close/{code}") { request in
    let code = try request.number("code", in: 0...65_535)
    return .script([.webSocket([.close(code, request.query["reason"] ?? ""), .drain])])
  },
]
