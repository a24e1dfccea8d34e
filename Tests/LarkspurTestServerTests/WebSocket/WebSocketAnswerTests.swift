import LarkspurHTTP
import LarkspurTestServer
import TestKit
import Testing

/// Opening handshakes, as the client's machine checks them.
@Suite(.ownThread) struct WebSocketAnswerTests {
  let server: TestServer

  init() throws {
    server = try TestServer()
  }

  @Test func theAcceptOfTheRFC() throws {
    server.webSocket("/chat", [])
    let client = try RawClient(server)
    // RFC 6455, section 1.3.
    try client.request(
      "GET", "/chat",
      "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        + "Sec-WebSocket-Version: 13\r\n")
    let response = try client.response()
    #expect(
      response.head
        == "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: [([], nil), (["c"], nil), (["b", "a"], "a"), (["c", "b"], "b")] as [([String], String?)])
  func choosesASubprotocol(offered: [String], chosen: String?) throws {
    server.webSocket("/", [], answer: .init(subprotocols: ["a", "b"]))
    let client = try WebSocketClient(server, protocols: offered)
    #expect(try client.agreement.get() == WebSocketAgreement(subprotocol: chosen))
    #expect(server.webSockets.map(\.subprotocol) == [chosen])
  }

  struct Deflate: Sendable {
    var offer: String?
    var wish: TestServer.WebSocketDeflate?
    var answer: String?
  }

  @Test(arguments: [
    Deflate(offer: nil, wish: .init(), answer: nil),
    Deflate(offer: "permessage-deflate", wish: nil, answer: nil),
    Deflate(offer: "x-other", wish: .init(), answer: nil),
    Deflate(offer: "permessage-deflate", wish: .init(), answer: "permessage-deflate"),
    Deflate(offer: "x-other, permessage-deflate; a=1, permessage-deflate", wish: .init(), answer: "permessage-deflate"),
    // RFC 7692, section 7.1.2.2: no client_max_window_bits in answer to a client that does not know it.
    Deflate(
      offer: "permessage-deflate", wish: .init(clientWindowBits: 9, serverWindowBits: 10),
      answer: "permessage-deflate; server_max_window_bits=10"),
    Deflate(
      offer: "permessage-deflate; client_max_window_bits", wish: .init(clientWindowBits: 9),
      answer: "permessage-deflate; client_max_window_bits=9"),
    Deflate(
      offer: "permessage-deflate; client_max_window_bits=8; server_max_window_bits=9; server_no_context_takeover",
      wish: .init(clientWindowBits: 10, serverWindowBits: 12, clientTakesOver: false),
      answer: "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=9; "
        + "client_max_window_bits=8"),
  ])
  func agreesOnCompression(_ deflate: Deflate) throws {
    server.webSocket("/", [], answer: .init(deflate: deflate.wish))
    let client = try WebSocketClient(server, extensions: deflate.offer)
    #expect(client.response.field("Sec-WebSocket-Extensions") == deflate.answer)
    #expect((server.webSockets[0].deflate != nil) == (deflate.answer != nil))
  }

  @Test func windowsAreInTheirRange() {
    let deflate = TestServer.WebSocketDeflate(clientWindowBits: 7, serverWindowBits: 16)
    #expect(deflate == TestServer.WebSocketDeflate(clientWindowBits: 8, serverWindowBits: 15))
  }

  @Test(
    arguments: [
      (.status(200), .statusUnexpected(200)), (.status(401), .statusUnexpected(401)),
      (.wrongAccept, .acceptInvalid("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
      (.omit("upgrade"), .upgradeMissing), (.omit("Connection"), .connectionMissing),
      (.omit("Sec-WebSocket-Accept"), .acceptMissing),
      (.replace("Upgrade", with: "h2c"), .upgradeInvalid("h2c")),
      (.replace("Sec-WebSocket-Protocol", with: "chat"), .subprotocolNotOffered("chat")),
      (.replace("Sec-WebSocket-Extensions", with: "permessage-deflate"), .extensionNotOffered("permessage-deflate")),
      (.add("Sec-WebSocket-Accept", "x"), .fieldRepeated("Sec-WebSocket-Accept")),
    ] as [(TestServer.WebSocketFault, WebSocketHandshakeError)])
  func answersWrongly(fault: TestServer.WebSocketFault, error: WebSocketHandshakeError) throws {
    server.webSocket("/", [.step(.expectClose)], answer: .init(faults: [fault]))
    let client = try WebSocketClient(server)
    #expect(throws: error) { try client.agreement.get() }
    client.raw.halfClose()
    #expect(try client.receive() == nil)
    #expect(server.failures.isEmpty)
  }

  @Test func asksForAPasswordFirst() throws {
    server.enqueue([
      .webSocket(
        [],
        answer: .init(
          fields: ["WWW-Authenticate": "Basic realm=\"x\""],
          faults: [.status(401), .omit("Upgrade"), .omit("Connection"), .omit("Sec-WebSocket-Accept")])),
      .webSocket([.send("in")]),
    ])
    let raw = try RawClient(server)
    let first = try WebSocketClient(raw)
    #expect(
      first.response.head
        == "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n")
    let second = try WebSocketClient(raw)
    #expect(try second.receive() == .init(.text, "in"))
    #expect(server.requestsReceived == 2)
  }

  @Test(arguments: [
    ("GET", "Connection: Upgrade\r\n", 426, "the request does not upgrade"),
    ("GET", "Upgrade: websocket\r\n", 426, "the request does not upgrade"),
    (
      "GET", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 12\r\n", 426,
      "the request is not for version 13"
    ),
    (
      "GET", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n",
      400, "the request has no valid Sec-WebSocket-Key"
    ),
    ("PUT", "", 400, "the request is PUT with HTTP/1.1, and not GET with HTTP/1.1"),
  ])
  func refusesAWrongHandshake(method: String, fields: String, status: Int, message: String) throws {
    server.enqueue([.webSocket([.send("never")])])
    let client = try RawClient(server)
    try client.request(method, "/", fields)
    let response = try client.response()
    #expect(response.status == status)
    #expect(response.field("Sec-WebSocket-Version") == "13")
    #expect(response.text == #"{"error":"\#(message)"}"# + "\n")
    #expect(try client.readToEnd() == [])
    #expect(server.failures == ["connection 1, script step 1 (webSocket): no right opening handshake: \(message)"])
    #expect(server.webSockets.isEmpty)
  }

  @Test func urls() throws {
    #expect(server.webSocketURL("/chat") == "ws://127.0.0.1:\(server.port)/chat")
    let secure = try TestServer(tls: .init(certificate: TestCA().issue()))
    #expect(secure.webSocketURL("chat", host: "localhost") == "wss://localhost:\(secure.port)/chat")
  }
}
