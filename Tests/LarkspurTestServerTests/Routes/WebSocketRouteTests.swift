import LarkspurHTTP
import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct WebSocketRouteTests {
  let server: TestServer

  init() throws {
    server = try TestServer()
  }

  @Test func echo() throws {
    let client = try WebSocketClient(server, "/websocket/echo", protocols: ["b", "a"], offersCompression: true)
    #expect(try client.agreement.get().subprotocol == "b")
    #expect(try client.agreement.get().compression != nil)
    try client.send(.text, "hello")
    #expect(try client.receive() == .init(.text, "hello"))
    let plain = try WebSocketClient(server, "/websocket/echo?deflate=0", offersCompression: true)
    #expect(try plain.agreement.get().compression == nil)
    #expect(server.failures.isEmpty)
  }

  @Test func messages() throws {
    let client = try WebSocketClient(server, "/websocket/messages/2")
    #expect(try client.receive() == .init(.text, "message 1"))
    #expect(try client.receive() == .init(.text, "message 2"))
    #expect(try client.receive() == .close(1000))
    try client.send(.close(1000))
    #expect(try client.receive() == nil)
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: [1000, 1006, 4999]) func close(code: Int) throws {
    let client = try WebSocketClient(server, "/websocket/close/\(code)?reason=a%20b")
    #expect(try client.receive() == .close(UInt16(code), "a b"))
    // A client may leave without a Close.
    client.raw.halfClose()
    #expect(try client.receive() == nil)
    #expect(server.failures.isEmpty)
  }

  @Test func parametersAreChecked() throws {
    let client = try RawClient(server)
    #expect(try client.get("/websocket/close/65536").status == 400)
    #expect(try client.get("/websocket/messages/x").status == 400)
    #expect(try client.get("/websocket/echo").status == 426)
  }
}
