import Glibc
import LarkspurTestServer
import TestKit
import Testing

/// Tests the output of `larkspur get` for a response that a session loads.
@Suite struct SessionOutputTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String...) async throws -> Command.Result {
    try await Command(["get", server.url(path)] + arguments).end()
  }

  @Test(arguments: ["/bytes/0", "/bytes/1", "/bytes/5000000", "/chunked/100000?chunk=7", "/close-delimited/100000"])
  func body(path: String) async throws {
    let result = try await get(path, "-L")
    #expect(result.status == 0)
    #expect(result.errors == "")
    let count = try #require(Int(path.split(separator: "/")[1].prefix { $0.isNumber }))
    #expect(result.output == TestServer.content(count: count))
  }

  @Test func headAndFail() async throws {
    let result = try await get("/bytes/5", "-L", "-i")
    #expect(result.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(result.text.contains("\r\nContent-Length: 5\r\n"))
    #expect(result.output.suffix(9) == [13, 10, 13, 10] + TestServer.content(count: 5))
    try directory.write("old", to: "file")
    let failed = try await get("/status/404", "-Lfo", directory.path("file"))
    #expect(failed.status == 22)
    #expect(failed.errors.contains("the server answered with 404 Not Found"))
    #expect(try directory.text(of: "file") == "old")
    #expect(directory.names == ["file"])
    let shown = try await get("/status/404", "-L", "-f", "-i")
    #expect(shown.status == 22)
    #expect(shown.text.hasPrefix("HTTP/1.1 404 Not Found\r\n") && shown.text.hasSuffix("\r\n\r\n"))
  }

  @Test func compressed() async throws {
    let result = try await get("/gzip/100000", "--compressed")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output == TestServer.content(count: 100_000))
    #expect(server.requests.last?.fields["Accept-Encoding"] == "gzip, deflate")
    // curl's exit status for an unknown coding.
    server.route("GET", "/coded") { _ in
      TestServer.Response(fields: ["Content-Encoding": "gzip, rot13"], body: .text("uryyb"))
    }
    #expect(try await get("/coded", "--compressed").status == 61)
    #expect(try await get("/coded", "-L").text == "uryyb")
    let asItIs = try await get("/gzip/100000", "-L")
    #expect(asItIs.output.prefix(2) == [0x1f, 0x8b])
    #expect(server.requests.last?.fields["Accept-Encoding"] == nil)
  }

  @Test func compressedThatIsBroken() async throws {
    server.route("GET", "/broken") { _ in
      TestServer.Response(fields: ["Content-Encoding": "gzip"], body: .text("this is no gzip"))
    }
    let result = try await get("/broken", "--compressed", "-o", directory.path("file"))
    #expect(result.status == 61, "\(result.errors)")
    #expect(directory.names == [])
  }

  // MARK: - Failures

  @Test func failures() async throws {
    let cases: [(TestServer.Script, Int32)] = [
      ([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close], 18),
      ([.expectRequest, .close], 52),
      ([.expectRequest, .send("nonsense\r\n\r\n"), .close], 1),
    ]
    for (script, status) in cases {
      server.defaultScript = script
      let result = try await get("/", "-L", "--retry", "0", "-o", directory.path("file"))
      #expect(result.status == status, "\(result.errors)")
      #expect(result.errors.hasPrefix("larkspur: \(server.authority): "))
      #expect(directory.names == [])
    }
    server.defaultScript = nil
    #expect(try await Command.run("get", "http://127.0.0.1:1/", "-L").status == 7)
    #expect(try await Command.run("get", "http://nobody.invalid/", "-L").status == 6)
    #expect(try await get("/hang", "-L", "--max-time", "0.2").status == 28)
    #expect(try await get("/redirect-to?url=ftp://x/", "-L").status == 1)
  }

  @Test func signals() async throws {
    let command = try Command(["get", server.url("/hang"), "-L"])
    _ = try await server.waitForRequests(1)
    command.send(signal: SIGTERM)
    #expect(try await command.end().status == 143)
  }

  @Test func aReaderThatGoesAway() async throws {
    let result = try await Command(["get", server.url("/bytes/5000000"), "-L"], output: .broken).end()
    #expect(result.status == 23)
    #expect(result.errors == "")
  }

  // MARK: - Resuming

  /// A response that is neither the rest nor an error is not appended to the file.
  @Test(arguments: [203, 204, 302]) func resumeWithOtherAnswers(status: Int) async throws {
    try directory.write("PART", to: "file")
    server.route("GET", "/other") { _ in
      TestServer.Response(status: status, fields: ["Location": "/"], body: .text(status == 204 ? "" : "moved"))
    }
    let result = try await get("/other", "-C", "-", "-o", directory.path("file"))
    #expect(result.status == 33, "\(result.errors)")
    #expect(try directory.text(of: "file") == "PART")
  }

  /// If the cookies cannot be written, the command reports an error and keeps the loaded file.
  @Test func aJarThatCannotBeWritten() async throws {
    let result = try await get(
      "/bytes/5", "--cookie-jar", directory.path("nowhere/jar"), "-o", directory.path("file"))
    #expect(result.status == 23 && result.errors.contains("nowhere/jar"))
    #expect(try directory.bytes(of: "file") == TestServer.content(count: 5))
  }

  @Test func cookiesOfTwoFields() async throws {
    _ = try await get("/bytes/5", "-L", "-H", "Cookie: a=1", "-H", "cookie: b=2")
    #expect(server.requests.last?.fields["Cookie"] == "a=1; b=2")
  }

  @Test func resume() async throws {
    let (count, cut) = (100_000, 30_000)
    try directory.write(TestServer.content(count: cut), to: "file")
    let result = try await get("/range/\(count)", "--resume", "-o", directory.path("file"))
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.requests.last?.fields["Range"] == "bytes=\(cut)-")
    #expect(try directory.bytes(of: "file") == TestServer.content(count: count))

    let complete = try await get("/range/\(count)", "-C", "-", "-o", directory.path("file"))
    #expect(complete.status == 0, "\(complete.errors)")
    #expect(try directory.bytes(of: "file") == TestServer.content(count: count))
    #expect(directory.names == ["file"])
  }

  /// curl exits with 0, too.
  @Test func resumeOfACompleteFileWithoutALength() async throws {
    try directory.write("complete", to: "file")
    let result = try await get("/status/416", "--resume", "-o", directory.path("file"))
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.requests.last?.fields["Range"] == "bytes=8-")
    #expect(try directory.text(of: "file") == "complete")
  }

  @Test func resumeFromNothing() async throws {
    let result = try await get("/range/1000", "--resume", "-o", directory.path("file"))
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.requests.last?.fields["Range"] == nil)
    #expect(try directory.bytes(of: "file") == TestServer.content(count: 1000))
  }

  /// Received bytes stay in the file, so that the next command can resume from them.
  @Test func resumeAgain() async throws {
    let result = try await get("/lie/900?bytes=100", "--resume", "--retry", "0", "-o", directory.path("file"))
    #expect(result.status == 18, "\(result.errors)")
    #expect(try directory.bytes(of: "file") == TestServer.content(count: 100))
    #expect(try await get("/range/1000", "--resume", "-o", directory.path("file")).status == 0)
    #expect(try directory.bytes(of: "file") == TestServer.content(count: 1000))
  }

  @Test(arguments: [
    ("/bytes/1000", 33, "the server sends the whole only"), ("/range/10", 36, "the server has other bytes: bytes */10"),
    ("/odd", 36, "the server sends bytes 0-9/10"), ("/status/404", 22, "the server answered with 404 Not Found"),
  ])
  func resumeThatFails(path: String, status: Int32, message: String) async throws {
    server.route("GET", "/odd") { _ in
      TestServer.Response(status: 206, fields: ["Content-Range": "bytes 0-9/10"], body: .content(0..<10))
    }
    try directory.write("twenty bytes of mine", to: "file")
    let result = try await get(path, "--resume", "-o", directory.path("file"))
    #expect(result.status == status)
    #expect(result.errors.contains(message), "\(result.errors)")
    #expect(try directory.text(of: "file") == "twenty bytes of mine")
  }

  /// A response that contradicts itself, or does not have the whole rest, fails the command.
  @Test(arguments: [
    ("bytes 20-29/100", "Content-Length: 10\r\n", 36), ("bytes 20-99/100", "Content-Length: 10\r\n", 36),
    ("bytes 20-29/30", "Content-Encoding: gzip\r\nContent-Length: 10\r\n", 36),
    ("bytes 20-/30", "Content-Length: 10\r\n", 36),
    ("bytes 20-29/30", "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: 10\r\n", 36),
    ("bytes 20-99/100", "Transfer-Encoding: chunked\r\n", 18), ("bytes 20-24/25", "Transfer-Encoding: chunked\r\n", 36),
  ])
  func resumeWithAPartThatDoesNotFit(range: String, fields: String, status: Int32) async throws {
    let body = fields.contains("chunked") ? "a\r\n0123456789\r\n0\r\n\r\n" : "0123456789"
    server.defaultScript = [
      .expectRequest, .send("HTTP/1.1 206 Partial Content\r\nContent-Range: \(range)\r\n\(fields)\r\n\(body)"), .close,
    ]
    try directory.write("twenty bytes of mine", to: "file")
    let result = try await get("/", "--resume", "-o", directory.path("file"))
    #expect(result.status == status, "\(result.errors)")
    let text = try directory.text(of: "file")
    #expect(text == "twenty bytes of mine" + (status == 18 ? "0123456789" : ""))
  }

  /// A response with a part in place of the whole, or several parts, fails the command, also if nothing is resumed.
  @Test(arguments: [
    ("200 OK", "Content-Range: bytes 10-19/20"), ("206 Partial Content", "Content-Range: bytes 10-18/20"),
    ("206 Partial Content", "Content-Type: multipart/byteranges; boundary=x"), ("206 Partial Content", "X: y"),
  ])
  func resumeWithATailInPlaceOfTheWhole(status: String, field: String) async throws {
    server.defaultScript = [
      .expectRequest, .send("HTTP/1.1 \(status)\r\n\(field)\r\nContent-Length: 10\r\n\r\n0123456789"), .close,
    ]
    for (name, content) in [("empty", ""), ("part", "ten bytes.")] {
      try directory.write(content, to: name)
      let result = try await get("/", "--resume", "-o", directory.path(name))
      #expect(result.status == 36, "\(result.errors)")
      #expect(try directory.text(of: name) == content)
    }
  }

  // MARK: - Metrics

  @Test func metrics() async throws {
    let result = try await get("/redirect/1", "-L", "--metrics")
    #expect(result.status == 0)
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == 4, "\(result.errors)")
    #expect(lines[0].hasPrefix("Request "))
    #expect(lines[1].hasPrefix("GET \(server.url("/redirect/1"))") && lines[1].contains(" 302 "))
    #expect(lines[2].hasPrefix("GET \(server.url("/get"))") && lines[2].contains(" 200 "))
    #expect(lines[2].hasSuffix("used again"))
    #expect(lines[3].hasSuffix("in all, 1 redirection"))
  }

  /// On a terminal the table is followed by a picture, without colors if the user wants none.
  @Test(arguments: [true, false])
  func pictureOfMetrics(hasColors: Bool) async throws {
    let result = try await Command(
      ["get", server.url("/redirect/1"), "-L", "--metrics"], environment: hasColors ? [:] : ["NO_COLOR": "1"],
      errors: .terminal
    ).end()
    let lines = result.errors.split(omittingEmptySubsequences: false) { $0.isNewline }.map(String.init)
    try #require(lines.count == 10, "\(result.errors)")
    #expect(lines[3].hasSuffix("in all, 1 redirection"))
    #expect(lines[4] == "" && lines[9] == "")
    let picture = lines[5...8].map { $0.replacing(/\u{1b}\[[0-9]*m/, with: "") }
    #expect((picture == Array(lines[5...8])) == !hasColors)
    // The second request is on the connection of the first.
    #expect(picture[0].wholeMatch(of: /GET \S+redirect\/1 +:* *-+ *>+ *\.+ *#+ +[0-9.]+ m?s/) != nil, "\(picture)")
    #expect(picture[1].wholeMatch(of: /GET \S+\/get +>+ *\.+ *#+ +[0-9.]+ m?s/) != nil, "\(picture)")
    #expect(picture[2].wholeMatch(of: /\s+0 .* m?s/) != nil, "\(picture)")
    #expect(picture[0].count == 79 && picture[1].count == 79)
    #expect(picture[3].hasSuffix("- connect  > request  . wait  # body"))
  }

  @Test func verboseLog() async throws {
    let result = try await get("/redirect/1", "-L", "-v", "-H", "X: y")
    #expect(result.status == 0)
    let lines = result.errors.split(separator: "\n").map(String.init)
    #expect(lines.filter { $0.hasPrefix("> GET") } == ["> GET /redirect/1 HTTP/1.1", "> GET /get HTTP/1.1"])
    #expect(lines.count { $0 == "> X: y" } == 2)
    #expect(lines.filter { $0.hasPrefix("< HTTP") } == ["< HTTP/1.1 302 Found", "< HTTP/1.1 200 OK"])
    #expect(lines.count { $0.hasSuffix(" ms  connected to \(server.authority)") } == 1)
    #expect(lines.count { $0.hasSuffix(" ms  the connection is used again") } == 1)
    #expect(lines.last?.contains(" ms  connection closed: not needed any more") == true)
  }

  /// `-i`, `-I` and `-D` write the bytes of all responses' heads.
  @Test func headBehindARedirection() async throws {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"), .expectRequest,
      .send("HTTP/1.1 200  odd\r\nb:1\r\na:  2\r\nContent-Length: 2\r\n\r\nok"), .expectClose,
    ])
    let result = try await get("/a", "-L", "-i", "-D", directory.path("heads"))
    let heads =
      "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
      + "HTTP/1.1 200  odd\r\nb:1\r\na:  2\r\nContent-Length: 2\r\n\r\n"
    #expect(result.text == heads + "ok")
    #expect(try directory.text(of: "heads") == heads)
  }

  /// A rate limit loses no bytes.
  @Test func limitedRate() async throws {
    let result = try await get("/bytes/200000", "--limit-rate", "1M")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output == TestServer.content(count: 200_000))
    let late = try await get("/bytes/200000", "--limit-rate", "1K", "--max-time", "0.1")
    #expect(late.status == 28, "\(late.errors)")
  }

  @Test func proxies() async throws {
    let result = try await Command.run(
      "get", "http://a.invalid/anything?x", "-L", "-x", "http://me:secret@\(server.authority)")
    #expect(result.status == 0, "\(result.errors)")
    let request = try #require(server.requests.last)
    #expect(request.target == "http://a.invalid/anything?x")
    #expect(request.fields["Proxy-Authorization"] == "Basic bWU6c2VjcmV0")
    let excepted = try await get("/anything", "-L", "-x", "127.0.0.1:1", "--noproxy", "127.0.0.1")
    #expect(excepted.status == 0, "\(excepted.errors)")
  }
}
