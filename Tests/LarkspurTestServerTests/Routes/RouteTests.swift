import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct RouteTests {
  let server: TestServer
  let client: RawClient

  init() throws {
    server = try TestServer()
    client = try RawClient(server)
  }

  @Test func getDescribesTheRequest() throws {
    let response = try client.get("/get?a=1&b=x%20y+z&a=2", "X-Test: one\r\nX-Test: two\r\n")
    #expect(response.status == 200)
    #expect(response.field("Content-Type") == "application/json")
    #expect(response.text.contains(#""method":"GET","target":"/get?a=1&b=x%20y+z&a=2","url":"http://test/get?"#))
    #expect(response.text.contains(#""args":{"a":["1","2"],"b":"x y z"}"#))
    #expect(response.text.contains(#""headers":{"Host":"test","X-Test":["one","two"]}"#))
    #expect(response.text.contains(#""connection":1,"ordinal":1"#))
  }

  @Test func postDescribesTheBody() throws {
    try client.send(
      "POST /post HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        + "Content-Length: 11\r\n\r\nq=a%26b&r=+")
    let text = try client.response().text
    #expect(text.contains(#""data":"q=a%26b&r=+","form":{"q":"a&b","r":" "}"#))
    #expect(text.contains(#""bodyCount":11,"bodyCRC32":"\#(TestServer.Checksum(Array("q=a%26b&r=+".utf8)))""#))
  }

  @Test func bodyThatIsNoTextIsEchoedInBase64() throws {
    try client.send("PUT /anything/deep/er HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\n")
    try client.send([0xff, 0, 1, 2])
    #expect(try client.response().text.contains(#""data":"data:application/octet-stream;base64,/wABAg==""#))
  }

  @Test(arguments: [0, 1, 16, 65_520, 65_521, 65_522, 300_000])
  func bytesAreTheContent(count: Int) throws {
    let response = try client.get("/bytes/\(count)")
    #expect(response.field("Content-Length") == String(count))
    #expect(response.body == TestServer.content(count: count))
    #expect(TestServer.Checksum(response.body) == TestServer.contentChecksum(count: count))
  }

  @Test func contentIsTheSameWhereverItIsCut() {
    let whole = TestServer.content(count: 200_000)
    #expect(TestServer.content(70_000..<150_000) == Array(whole[70_000..<150_000]))
    #expect(TestServer.content(count: -1).isEmpty)
  }

  @Test func chunked() throws {
    let response = try client.get("/chunked/10?chunk=4&extensions=1&trailers=1")
    #expect(response.body == TestServer.content(count: 10))
    let mark = #";plain=1;quoted="a;\"b\"""#
    #expect(response.rawBody == "4\(mark)\r\n4\(mark)\r\n2\(mark)\r\n0\(mark)\r\n")
    #expect(response.field("Trailer") == "X-Checksum")
    #expect(response.trailers == "X-Checksum: \(TestServer.contentChecksum(count: 10))\r\n")
    #expect(try client.get("/chunked/200000?chunk=7").body == TestServer.content(count: 200_000))
    #expect(try client.get("/chunked/0").rawBody == "0\r\n")
  }

  @Test func streamSendsALinePerChunk() throws {
    let response = try client.get("/stream/3")
    #expect(
      response.text.split(separator: "\n").map(String.init)
        == (0..<3).map {
          #"{"line":\#($0),"url":"http://test/stream/3"}"#
        })
    #expect(response.rawBody.split(separator: "\r\n").count == 4)
  }

  @Test(arguments: [200, 201, 299, 404, 418, 500, 999])
  func status(status: Int) throws {
    #expect(try client.get("/status/\(status)").status == status)
  }

  @Test(arguments: [204, 304])
  func statusWithoutABody(status: Int) throws {
    let response = try client.get("/status/\(status)")
    #expect(response.status == status)
    #expect(response.field("Content-Length") == nil)
    #expect(try client.get("/get").status == 200)
  }

  @Test func redirectsFormAChain() throws {
    #expect(try client.get("/redirect/3").field("Location") == "/redirect/2")
    #expect(try client.get("/redirect/1").field("Location") == "/get")
    #expect(try client.get("/redirect/2?absolute=1").field("Location") == "http://test/redirect/1?absolute=1")
    let response = try client.get("/redirect-to?url=http%3A%2F%2Fa%2Fb%3Fc&status=307")
    #expect(response.status == 307)
    #expect(response.field("Location") == "http://a/b?c")
  }

  @Test func dripSendsItAll() throws {
    #expect(try client.get("/drip?bytes=10&pieces=4&interval=0").body == TestServer.content(count: 10))
    #expect(try client.get("/drip?bytes=2&pieces=5&interval=1").body == TestServer.content(count: 2))
  }

  @Test func delayAnswersInTheEnd() throws {
    #expect(try client.get("/delay/1").status == 200)
  }

  @Test func earlyHintsComeFirst() throws {
    #expect(try client.get("/early-hints").field("Link") == "</style.css>; rel=preload; as=style")
    #expect(try client.response().status == 103)
    #expect(try client.response().text == "after the hints\n")
  }

  @Test func etag() throws {
    #expect(try client.get("/etag").field("ETag") == "\"larkspur\"")
    #expect(try client.get("/etag/x", "If-None-Match: \"y\", W/\"x\"\r\n").status == 304)
    #expect(try client.get("/etag/x", "If-None-Match: \"y\"\r\n").status == 200)
    #expect(try client.get("/etag/x", "If-Match: \"y\"\r\n").status == 412)
    #expect(try client.get("/etag/x", "If-Match: \"x\"\r\n").status == 200)
  }

  @Test(arguments: [
    ("bytes=0-0", 206, 0..<1), ("bytes=10-19", 206, 10..<20), ("bytes=90-", 206, 90..<100), ("bytes=-5", 206, 95..<100),
    ("bytes=-500", 206, 0..<100), ("bytes=50-5000", 206, 50..<100), ("bytes=7-3", 200, 0..<100),
    ("bytes=1-2,4-5", 200, 0..<100), ("lines=1-2", 200, 0..<100), ("bytes=x", 200, 0..<100),
  ])
  func range(header: String, status: Int, range: Range<Int>) throws {
    let response = try client.get("/range/100", "Range: \(header)\r\n")
    #expect(response.status == status)
    #expect(response.body == TestServer.content(range))
    let expected = status == 206 ? "bytes \(range.lowerBound)-\(range.upperBound - 1)/100" : nil
    #expect(response.field("Content-Range") == expected)
  }

  @Test(arguments: ["bytes=100-", "bytes=100-200", "bytes=-0"])
  func unsatisfiableRange(header: String) throws {
    let response = try client.get("/range/100", "Range: \(header)\r\n")
    #expect(response.status == 416)
    #expect(response.field("Content-Range") == "bytes */100")
  }

  @Test func rangeIsIgnoredWhenTheContentIsAnother() throws {
    #expect(try client.get("/range/100", "Range: bytes=1-2\r\nIf-Range: \"range-100\"\r\n").status == 206)
    #expect(try client.get("/range/100", "Range: bytes=1-2\r\nIf-Range: \"range-99\"\r\n").status == 200)
    #expect(try client.get("/range/100", "If-None-Match: \"range-100\"\r\n").status == 304)
  }

  @Test func closeDelimited() throws {
    let response = try client.get("/close-delimited/1000")
    #expect(response.field("Content-Length") == nil)
    #expect(response.field("Connection") == "close")
    #expect(response.body == TestServer.content(count: 1000))
  }

  @Test func lieSendsLessThanItSays() throws {
    try client.request("GET", "/lie/7?bytes=10")
    let text = try client.readToEnd()
    #expect(text.suffix(10) == TestServer.content(count: 10)[...])
    #expect(String(decoding: text.dropLast(10), as: UTF8.self).contains("Content-Length: 17\r\n"))
  }

  @Test func unknownPathsAndMethods() throws {
    let response = try client.get("/nowhere")
    #expect(response.status == 404)
    #expect(response.text == #"{"error":"no such path","path":"/nowhere"}"# + "\n")
    let refused = try client.get("/post")
    #expect(refused.status == 405)
    #expect(refused.field("Allow") == "POST")
    #expect(try client.get("/bytes/many").status == 400)
    #expect(try client.get("/bytes/-1").status == 400)
    #expect(try client.get("/status/99999999999999999999").status == 400)
    #expect(server.failures.isEmpty)
  }

  @Test func addedRoutesComeFirst() throws {
    server.route("GET", "/hello/{name}") { request in .text("Hello, \(request.parameters["name"] ?? "")!") }
    server.route("*", "/get") { _ in .json(["mine": [1, 2.5, true, nil, "a\"\\\n\u{1}"]], status: 201) }
    server.route("GET", "/files/*") { .text($0.path) }
    #expect(try client.get("/hello/W%C3%B6rld").text == "Hello, Wörld!")
    #expect(try client.get("/get").text == #"{"mine":[1,2.5,true,null,"a\"\\\n\u0001"]}"# + "\n")
    #expect(try client.get("/files/a/b").text == "/files/a/b")
    #expect(server.requests.map(\.parameters).first == [:])
  }

  @Test func routeThatThrows() throws {
    struct Oops: Error {}
    server.route("GET", "/oops") { _ in throw Oops() }
    #expect(try client.get("/oops").status == 500)
    #expect(server.failures == ["connection 1, GET /oops: the route threw Oops()"])
  }

  @Test func streamThatThrowsResetsTheConnection() throws {
    struct Oops: Error {}
    server.route("GET", "/oops") { _ in
      .init(
        body: .stream(count: 10) { writer in
          try writer.write("12345")
          throw Oops()
        })
    }
    try client.request("GET", "/oops")
    #expect(throws: (any Error).self) { try client.readToEnd() }
    #expect(server.failures == ["connection 1, GET /oops: its body ended with an error: Oops()"])
  }

  @Test func absoluteTargets() throws {
    #expect(try client.get("http://elsewhere/get?a=1").text.contains(#""url":"http://elsewhere/get?a=1""#))
    #expect(try client.get("http://elsewhere").status == 404)
    try client.request("OPTIONS", "*")
    #expect(try client.response().status == 204)
  }
}
