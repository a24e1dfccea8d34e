import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct ProtocolTests {
  let server: TestServer
  let client: RawClient

  init() throws {
    server = try TestServer()
    client = try RawClient(server)
  }

  @Test func connectionIsKeptAlive() throws {
    for ordinal in 1...100 {
      #expect(try client.get("/get").text.contains(#""connection":1,"ordinal":\#(ordinal)}"#))
    }
    #expect(server.connectionsAccepted == 1)
    #expect(server.requestsReceived == 100)
  }

  @Test(arguments: [
    "/get", "/bytes/10", "/chunked/10", "/stream/3", "/close-delimited/5", "/gzip", "/gzip/100", "/range/10", "/drip",
    "/status/404", "/redirect/2", "/lie/5", "/nowhere",
  ])
  func headHasNoBody(target: String) throws {
    try client.request("HEAD", target)
    _ = try client.response(hasBody: false)
    // The next response follows directly, since there was no body. `/lie` closes the connection.
    if target != "/lie/5" { #expect(try client.get("/status/200").text == "{\"status\":200}\n") }
  }

  @Test func headHasTheLength() throws {
    try client.request("HEAD", "/bytes/1234")
    #expect(try client.response(hasBody: false).field("Content-Length") == "1234")
  }

  @Test func requestToClose() throws {
    try client.request("GET", "/bytes/3", "Connection: Close\r\n")
    let text = String(decoding: try client.readToEnd().dropLast(3), as: UTF8.self)
    #expect(text.contains("\r\nConnection: close\r\n"))
  }

  @Test func http10ClosesUnlessAskedNotTo() throws {
    try client.request("GET", "/bytes/3", version: "HTTP/1.0", "Connection: keep-alive\r\n")
    #expect(try client.response().field("Connection") == "keep-alive")
    try client.request("GET", "/chunked/3", version: "HTTP/1.0")
    let response = try client.response()
    #expect(response.field("Transfer-Encoding") == nil)
    #expect(response.body == TestServer.content(count: 3))
  }

  @Test func http10GetsNoInterimResponse() throws {
    try client.request("GET", "/early-hints", version: "HTTP/1.0")
    #expect(try client.response().status == 200)
  }

  @Test func http10NeedsNoHost() throws {
    try client.send("GET /headers HTTP/1.0\r\n\r\n")
    #expect(try client.response().text == "{\"headers\":{}}\n")
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() throws {
    try client.send((1...50).map { "GET /bytes/\($0) HTTP/1.1\r\nHost: test\r\n\r\n" }.joined())
    for count in 1...50 { #expect(try client.response().body == TestServer.content(count: count)) }
  }

  @Test func expectContinue() throws {
    try client.send("POST /post HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    #expect(try client.response().status == 100)
    try client.send("hello")
    #expect(try client.response().text.contains(#""data":"hello""#))
  }

  @Test func chunkedRequest() throws {
    try client.send("POST /post HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: Chunked\r\n\r\n")
    try client.send("5\r\nhello\r\n1;x=\"y\"\r\n,\r\n")
    try client.send("00006\r\n world\r\n0\r\nX-Sum: 12\r\n\r\n")
    let text = try client.response().text
    #expect(text.contains(#""data":"hello, world""#))
    #expect(text.contains(#""trailers":{"X-Sum":"12"}"#))
    #expect(server.requests[0].trailers["x-sum"] == "12")
  }

  @Test func longBodiesAreCountedAndCut() throws {
    var options = TestServer.Options()
    options.bodyBytesKept = 1000
    let server = try TestServer(options)
    let client = try RawClient(server)
    try client.send("POST /post HTTP/1.1\r\nHost: test\r\nContent-Length: 300000\r\n\r\n")
    try client.send(TestServer.content(count: 300_000))
    #expect(try client.response().text.contains(#""bodyCount":300000"#))
    #expect(server.requests[0].body == TestServer.content(count: 1000))
    #expect(server.requests[0].bodyCount == 300_000)
    #expect(server.requests[0].bodyChecksum == TestServer.contentChecksum(count: 300_000))
  }

  @Test func recordsKeepTheLatest() throws {
    var options = TestServer.Options()
    options.requestsKept = 3
    let server = try TestServer(options)
    let client = try RawClient(server)
    for number in 1...10 { _ = try client.get("/status/\(200 + number)") }
    #expect(server.requests.map(\.target) == ["/status/208", "/status/209", "/status/210"])
    #expect(server.requestsReceived == 10)
  }

  @Test func recordsAreComplete() throws {
    try client.send("POST /post?x=%41 HTTP/1.1\r\nHost: test\r\nX-One:  two \r\nContent-Length: 2\r\n\r\nab")
    _ = try client.response()
    let request = try #require(server.requests.first)
    #expect(request.method == "POST")
    #expect(request.target == "/post?x=%41")
    #expect(request.path == "/post")
    #expect(request.query == ["x": "A"])
    #expect(request.version == "HTTP/1.1")
    #expect(request.fields["x-one"] == "two")
    #expect(request.fields.map(\.name) == ["Host", "X-One", "Content-Length"])
    #expect(request.bodyText == "ab")
    #expect(request.connection == 1)
    #expect(request.ordinal == 1)
  }

  @Test func ipv6() throws {
    var options = TestServer.Options()
    options.address = .ipv6
    let server = try TestServer(options)
    #expect(server.url("/get") == "http://[::1]:\(server.port)/get")
    #expect(try RawClient(server).get("/get").status == 200)
  }

  @Test func url() {
    #expect(server.url("/get?x") == "http://127.0.0.1:\(server.port)/get?x")
    #expect(server.url("get") == server.url("/get"))
  }

  @Test func lengthThatARouteSetsIsSentAsItIs() throws {
    server.route("GET", "/long") { _ in .init(fields: ["Content-Length": "3"], body: .text("hello")) }
    try client.request("GET", "/long")
    let text = try client.textToEnd()
    #expect(text == "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhello")
  }

  @Test func streamOfAnotherLengthThanAnnouncedClosesTheConnection() throws {
    server.route("GET", "/short") { _ in .init(body: .stream(count: 9) { try $0.write("hello") }) }
    try client.request("GET", "/short")
    #expect(try client.textToEnd() == "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
  }
}
