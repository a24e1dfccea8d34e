import LarkspurHTTP
import Testing

@Suite struct WebSocketHandshakeTests {
  /// The key of RFC 6455 1.3.
  static let nonce = Array("the sample nonce".utf8)
  static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
  static let response: FieldList = [
    Field("Upgrade", "websocket"), Field("Connection", "Upgrade"), Field("Sec-WebSocket-Accept", accept),
  ]

  static func handshake(_ protocols: [String] = [], compression: Bool = false) throws -> WebSocketHandshake {
    try WebSocketHandshake(nonce: nonce, protocols: protocols, offersCompression: compression, sha1: sha1)
  }

  static func values(_ fields: FieldList) -> (String) -> [String] {
    { name in fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value) }
  }

  static func check(
    _ fields: FieldList, status: Int = 101, protocols: [String] = ["chat", "v2"], compression: Bool = true
  ) throws -> WebSocketAgreement {
    try handshake(protocols, compression: compression).check(status: status, fields: values(fields))
  }

  /// Returns the response without the fields called `name`, and with `values` for them.
  static func with(_ name: String, _ values: [String]) -> FieldList {
    response.filter { $0.name != name } + values.map { Field(name, $0) }
  }

  // MARK: - Request

  @Test func requestFields() throws {
    let fields = try Self.handshake().fields
    #expect(fields.map(\.name) == ["Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version"])
    #expect(fields.map(\.value) == ["websocket", "Upgrade", "dGhlIHNhbXBsZSBub25jZQ==", "13"])
    let offers = try Self.handshake(["chat", "v2"], compression: true).fields.suffix(2)
    #expect(offers.map(\.name) == ["Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"])
    #expect(offers.map(\.value) == ["chat, v2", "permessage-deflate; client_max_window_bits"])
  }

  static let misuses: [(protocols: [String], error: WebSocketHandshakeError)] = [
    ([""], .subprotocolInvalid("")), (["a b"], .subprotocolInvalid("a b")), (["a,b"], .subprotocolInvalid("a,b")),
    (["a\r\nB: c"], .subprotocolInvalid("a\r\nB: c")), (["é"], .subprotocolInvalid("é")),
    (["a", "b", "a"], .subprotocolRepeated("a")),
  ]

  @Test(arguments: misuses.indices) func misuse(index: Int) {
    let row = Self.misuses[index]
    #expect(throws: row.error) { try Self.handshake(row.protocols) }
  }

  @Test func withoutSHA1() {
    #expect(throws: WebSocketHandshakeError.hashUnavailable) {
      try WebSocketHandshake(nonce: Self.nonce, protocols: [], offersCompression: false) { _ in nil }
    }
  }

  // MARK: - Response

  static let accepted: [(fields: FieldList, agreement: WebSocketAgreement)] = [
    (response, WebSocketAgreement()),
    (with("Upgrade", ["WebSocket"]), WebSocketAgreement()),
    (with("Upgrade", [" websocket\t"]), WebSocketAgreement()),
    (with("Connection", ["keep-alive, UPGRADE"]), WebSocketAgreement()),
    (with("Connection", ["keep-alive", ",upgrade ,"]), WebSocketAgreement()),
    (with("Sec-WebSocket-Accept", [" \(accept) "]), WebSocketAgreement()),
    (with("Sec-WebSocket-Protocol", ["v2"]), WebSocketAgreement(subprotocol: "v2")),
    (
      with("Sec-WebSocket-Extensions", ["permessage-deflate"]),
      WebSocketAgreement(compression: WebSocketCompression())
    ),
    (
      with("Sec-WebSocket-Extensions", ["permessage-deflate; server_no_context_takeover; client_max_window_bits=8"]),
      WebSocketAgreement(compression: WebSocketCompression(clientWindowBits: 8, serverTakesOver: false))
    ),
  ]

  @Test(arguments: accepted.indices) func accepts(index: Int) throws {
    let row = Self.accepted[index]
    #expect(try Self.check(row.fields) == row.agreement)
  }

  static let refused: [(fields: FieldList, error: WebSocketHandshakeError)] = [
    (with("Upgrade", []), .upgradeMissing),
    (with("Upgrade", ["h2c"]), .upgradeInvalid("h2c")),
    (with("Upgrade", ["websocket, h2c"]), .upgradeInvalid("websocket, h2c")),
    (with("Upgrade", ["websocket", "websocket"]), .upgradeInvalid("websocket, websocket")),
    (with("Connection", []), .connectionMissing),
    (with("Connection", ["close"]), .connectionInvalid("close")),
    (with("Connection", ["upgrades", "x-upgrade"]), .connectionInvalid("upgrades, x-upgrade")),
    (with("Sec-WebSocket-Accept", []), .acceptMissing),
    (with("Sec-WebSocket-Accept", [""]), .acceptInvalid("")),
    (with("Sec-WebSocket-Accept", [accept.lowercased()]), .acceptInvalid(accept.lowercased())),
    (with("Sec-WebSocket-Accept", [accept, accept]), .fieldRepeated("Sec-WebSocket-Accept")),
    (with("Sec-WebSocket-Protocol", ["v3"]), .subprotocolNotOffered("v3")),
    (with("Sec-WebSocket-Protocol", ["Chat"]), .subprotocolNotOffered("Chat")),
    (with("Sec-WebSocket-Protocol", [""]), .subprotocolNotOffered("")),
    (with("Sec-WebSocket-Protocol", ["chat, v2"]), .subprotocolNotOffered("chat, v2")),
    (with("Sec-WebSocket-Protocol", ["chat", "chat"]), .fieldRepeated("Sec-WebSocket-Protocol")),
    (with("Sec-WebSocket-Extensions", [""]), .extensionsInvalid("")),
    (with("Sec-WebSocket-Extensions", ["permessage-deflate;"]), .extensionsInvalid("permessage-deflate;")),
    (with("Sec-WebSocket-Extensions", ["x-webkit-deflate-frame"]), .extensionNotOffered("x-webkit-deflate-frame")),
    (with("Sec-WebSocket-Extensions", ["permessage-deflate, other"]), .extensionNotOffered("other")),
    (
      with("Sec-WebSocket-Extensions", ["permessage-deflate, permessage-deflate"]),
      .extensionRepeated("permessage-deflate")
    ),
    (
      with("Sec-WebSocket-Extensions", ["permessage-deflate", "permessage-deflate"]),
      .fieldRepeated("Sec-WebSocket-Extensions")
    ),
    (with("Sec-WebSocket-Extensions", ["permessage-deflate; x"]), .parameterUnknown("x")),
  ]

  @Test(arguments: refused.indices) func refuses(index: Int) {
    let row = Self.refused[index]
    #expect(throws: row.error) { try Self.check(row.fields) }
  }

  @Test(arguments: [100, 200, 204, 301, 401, 407, 426, 500, 0, -1]) func otherStatus(status: Int) {
    #expect(throws: WebSocketHandshakeError.statusUnexpected(status)) { try Self.check(Self.response, status: status) }
  }

  /// What was not offered may not be chosen.
  @Test func nothingOffered() {
    #expect(throws: WebSocketHandshakeError.extensionNotOffered("permessage-deflate")) {
      try Self.check(Self.with("Sec-WebSocket-Extensions", ["permessage-deflate"]), compression: false)
    }
    #expect(throws: WebSocketHandshakeError.subprotocolNotOffered("chat")) {
      try Self.check(Self.with("Sec-WebSocket-Protocol", ["chat"]), protocols: [])
    }
  }

  /// Every error has a text of its own.
  @Test func descriptions() {
    let errors = Self.refused.map(\.error) + Self.misuses.map(\.error) + [.hashUnavailable, .keyInvalid]
    let different = Set(errors)
    #expect(Set(different.map(\.description)).count == different.count)
  }

  // MARK: - Server

  @Test func serverAgrees() throws {
    let client = try Self.handshake(["chat", "v2"], compression: true)
    let offer = try WebSocketOffer(fields: Self.values(client.fields))
    #expect(offer.protocols == ["chat", "v2"])
    #expect(offer.compressions == [WebSocketCompression()])
    let agreement = WebSocketAgreement(
      subprotocol: "v2",
      compression: WebSocketCompression(
        clientWindowBits: 9, serverWindowBits: 10, clientTakesOver: false, serverTakesOver: false))
    let fields = try #require(offer.responseFields(agreement, sha1: sha1))
    #expect(try client.check(status: 101, fields: Self.values(fields)) == agreement)
    #expect(offer.responseFields(agreement) { _ in nil } == nil)
  }

  static let request: FieldList = [
    Field("Upgrade", "WebSocket"), Field("Connection", "keep-alive, Upgrade"), Field("Sec-WebSocket-Version", "13"),
    Field("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
  ]

  static func request(_ name: String, _ values: [String]) -> FieldList {
    request.filter { $0.name != name } + values.map { Field(name, $0) }
  }

  static let refusedRequests: [(fields: FieldList, error: WebSocketHandshakeError)] = [
    (request("Upgrade", []), .upgradeMissing), (request("Connection", ["close"]), .connectionMissing),
    (request("Sec-WebSocket-Version", ["8"]), .versionUnsupported),
    (request("Sec-WebSocket-Version", []), .versionUnsupported),
    (request("Sec-WebSocket-Key", []), .keyInvalid),
    (request("Sec-WebSocket-Key", ["dGhlIHNhbXBsZSBub25jZQ=="] + ["dGhlIHNhbXBsZSBub25jZQ=="]), .keyInvalid),
    (request("Sec-WebSocket-Key", ["dGhl"]), .keyInvalid),
    (request("Sec-WebSocket-Extensions", ["a;;"]), .extensionsInvalid("a;;")),
  ]

  @Test(arguments: refusedRequests.indices) func serverRefuses(index: Int) {
    let row = Self.refusedRequests[index]
    #expect(throws: row.error) { try WebSocketOffer(fields: Self.values(row.fields)) }
  }

  /// RFC 7692 5.1: offers that cannot be accepted are declined, and others are considered in their order.
  @Test func serverDeclinesOffers() throws {
    let fields = Self.request(
      "Sec-WebSocket-Extensions",
      ["permessage-deflate; server_max_window_bits=7, other", "permessage-deflate; server_max_window_bits=10"])
    #expect(
      try WebSocketOffer(fields: Self.values(fields)).compressions == [WebSocketCompression(serverWindowBits: 10)])
  }

  /// A WebSocket's URL names the HTTP server that opens it (RFC 6455 3).
  @Test(
    arguments: [
      ("ws://a.example/x?y", "http://a.example/x?y"), ("WSS://[::1]:1/", "https://[::1]:1/"), ("wss:", "https:"),
      ("http://a.example/", nil), ("wsx://a.example/", nil), ("ws", nil), ("", nil),
    ] as [(String, String?)])
  func theURLOfAHandshake(url: String, expected: String?) {
    #expect(WebSocketHandshake.httpURL(of: url) == expected)
  }
}
