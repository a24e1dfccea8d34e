import LarkspurTestServer
import TestKit
import Testing

/// Tests the requests that `larkspur get` makes with a session.
@Suite struct SessionTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String..., input: [UInt8] = []) async throws -> Command.Result {
    try await Command(["get", server.url(path)] + arguments).end(input: input)
  }

  // MARK: - Requests

  @Test func json() async throws {
    try directory.write(",2]", to: "data")
    let result = try await get("/anything", "--json", "[1", "--json", "@" + directory.path("data"))
    #expect(result.status == 0, "\(result.errors)")
    let request = try #require(server.requests.last)
    #expect(request.method == "POST")
    #expect(request.bodyText == "[1,2]")
    #expect(request.fields.values("Content-Type") == ["application/json"])
    #expect(request.fields.values("Accept") == ["application/json"])
    #expect(request.fields["User-Agent"]?.hasPrefix("larkspur/") == true)
    #expect(request.fields["Cookie"] == nil)
  }

  @Test func ownFieldsComeFirst() async throws {
    let result = try await get(
      "/anything", "--json", "{}", "-X", "PUT", "-H", "accept: text/plain", "-H", "Host: other.example", "-H", "X: 1",
      "-H", "X: 2")
    #expect(result.status == 0, "\(result.errors)")
    let request = try #require(server.requests.last)
    #expect(request.method == "PUT")
    #expect(request.fields.values("Accept") == ["text/plain"])
    #expect(request.fields.values("Host") == ["other.example"])
    #expect(request.fields.values("X") == ["1", "2"])
  }

  @Test func whatCannotBeSentIsRefused() async throws {
    let bad = try await get("/", "-L", "-H", "A: b\r\nC: d")
    #expect(bad.status == 2)
    #expect(bad.errors == "larkspur: the request cannot be sent: the value of A holds a control character\n")
    #expect(server.connectionsAccepted == 0)
  }

  @Test func bodyOfAGet() async throws {
    for option in ["--json", "-d"] {
      #expect(try await get("/anything", "-X", "GET", option, "[1]").status == 0)
      let request = try #require(server.requests.last)
      #expect(request.method == "GET")
      #expect(request.bodyText == "[1]")
    }
  }

  @Test func form() async throws {
    let text = String(repeating: "line\r\n\0", count: 500_000)
    try directory.write(text, to: "data")
    let result = try await get(
      "/anything", "-F", "a\"b=c\nd", "-F", "file=@\(directory.path("data"));type=text/plain", "-F", "in=@-",
      input: Array("stdin".utf8))
    #expect(result.status == 0, "\(result.errors)")
    let request = try #require(server.requests.last)
    #expect(request.method == "POST")
    let type = try #require(request.fields["Content-Type"])
    #expect(type.hasPrefix("multipart/form-data; boundary="))
    let boundary = String(type.split(separator: "=")[1])
    let body =
      "--\(boundary)\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\nc\nd\r\n"
      + "--\(boundary)\r\nContent-Disposition: form-data; name=\"file\"; filename=\"data\"\r\n"
      + "Content-Type: text/plain\r\n\r\n\(text)\r\n"
      + "--\(boundary)\r\nContent-Disposition: form-data; name=\"in\"; filename=\"-\"\r\n"
      + "Content-Type: application/octet-stream\r\n\r\nstdin\r\n--\(boundary)--\r\n"
    #expect(request.fields["Content-Length"] == "\(body.utf8.count)")
    #expect(request.fields["Transfer-Encoding"] == nil)
    #expect(request.bodyChecksum == TestServer.Checksum(Array(body.utf8)))
  }

  /// The boundary is appended to any content type that `-H` sets, as curl does.
  @Test(arguments: [
    ("multipart/form-data", "multipart/form-data; boundary="),
    ("multipart/mixed;a=b", "multipart/mixed;a=b; boundary="),
    ("multipart/form-data; boundary=\"own one\"", "multipart/form-data; boundary=\"own one\""),
  ])
  func formWithATypeOfItsOwn(given: String, sent: String) async throws {
    let result = try await get("/anything", "-F", "a=b", "-H", "Content-Type: \(given)")
    #expect(result.status == 0, "\(result.errors)")
    let request = try #require(server.requests.last)
    #expect(request.fields.values("Content-Type").count == 1)
    let type = try #require(request.fields["Content-Type"])
    #expect(type.hasPrefix(sent))
    let boundary = String(try #require(type.split(separator: "=").last).filter { $0 != "\"" })
    #expect(
      request.bodyText
        == "--\(boundary)\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--\(boundary)--\r\n")
  }

  @Test func optionsOfAPart() async throws {
    let result = try await get(
      "/anything", "-F", "n=x;type=text/html;charset=utf-8;filename=\"y\"", "-F", "\"\u{301}=;headers=X-A: b",
      "-F", "o=p;type=a/b;headers=Content-Type: c/d", "-F", "q=@-;headers=Content-Type: e/f", "-H",
      "Content-Type: multipart/form-data; boundary=z")
    #expect(result.status == 0, "\(result.errors)")
    let disposition = "Content-Disposition: form-data; name="
    #expect(
      server.requests.last?.bodyText
        == "--z\r\n\(disposition)\"n\"; filename=\"y\"\r\nContent-Type: text/html;charset=utf-8\r\n\r\nx\r\n"
        + "--z\r\n\(disposition)\"%22\u{301}\"\r\nX-A: b\r\n\r\n\r\n"
        + "--z\r\n\(disposition)\"o\"\r\nContent-Type: a/b\r\n\r\np\r\n"
        + "--z\r\n\(disposition)\"q\"; filename=\"-\"\r\nContent-Type: e/f\r\n\r\n\r\n--z--\r\n")
  }

  @Test func formThatIsSentTwice() async throws {
    try directory.write("content", to: "data")
    let result = try await get(
      "/redirect-to?url=/anything&status=307", "-L", "-F", "file=@" + directory.path("data"))
    #expect(result.status == 0, "\(result.errors)")
    let requests = server.requests
    #expect(requests.map(\.method) == ["POST", "POST"])
    #expect(requests.last?.path == "/anything")
    #expect(requests.first?.body == requests.last?.body)
    #expect(requests.last?.bodyText.contains("content") == true)
  }

  @Test func formOfAFileThatCannotBeRead() async throws {
    let result = try await get("/anything", "-F", "a=@" + directory.path("missing"))
    #expect(result.status == 26)
    #expect(
      result.errors == "larkspur: could not read \(directory.path("missing")): No such file or directory (ENOENT)\n")
    #expect(server.connectionsAccepted == 0)
  }

  // MARK: - Credentials

  @Test func user() async throws {
    #expect(try await get("/anything", "--user", "user:p@ss").status == 0)
    #expect(server.requests.last?.fields.values("Authorization") == ["Basic dXNlcjpwQHNz"])
  }

  /// Locks a route with a Digest challenge for the user of the example in RFC 7616 3.9.1.
  private func lock() {
    server.route("GET", "/locked") { request in
      guard let value = request.fields["Authorization"], value.hasPrefix("Digest username=\"Mufasa\"") else {
        return TestServer.Response(
          status: 401,
          fields: [
            "WWW-Authenticate": "Basic realm=\"x\", Digest realm=\"x\", nonce=\"abc\", qop=\"auth\", algorithm=MD5"
          ],
          body: .text("locked"))
      }
      return .text("open")
    }
  }

  @Test func digest() async throws {
    lock()
    let result = try await get("/locked", "--digest", "--user", "Mufasa:Circle of Life")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text == "open")
    #expect(server.requests.map { $0.fields["Authorization"] != nil } == [false, true])
    let answer = try #require(server.requests.last?.fields["Authorization"])
    #expect(answer.contains("nc=00000001") && answer.contains("uri=\"/locked\"") && !answer.contains("Circle"))
    let inURL = try await Command.run("get", "http://Mufasa:x@\(server.authority)/locked", "--digest")
    #expect(inURL.text == "open")
  }

  /// With `--digest` a Basic challenge is not answered, and a refused answer is not sent again.
  @Test func digestThatIsRefused() async throws {
    lock()
    let stranger = try await get("/locked", "--digest", "--user", "Scar:x", "--fail")
    #expect(stranger.status == 22)
    #expect(server.requestsReceived == 2)
    server.route("GET", "/basic") { _ in
      TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"x\""], body: .text("who?"))
    }
    let basic = try await get("/basic", "--digest", "--user", "Mufasa:secret")
    #expect(basic.status == 0)
    #expect(basic.text == "who?")
    #expect(server.requestsReceived == 3)
    #expect(try await get("/locked", "--digest").status == 2)
  }

  @Test func passwordsOfOneServer() async throws {
    let other = try TestServer()
    let result = try await get("/redirect-to?url=\(other.url("/anything"))", "-L", "-u", "user:pass")
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.requests.last?.fields["Authorization"] == "Basic dXNlcjpwYXNz")
    #expect(other.requestsReceived == 1)
    #expect(other.requests.last?.fields["Authorization"] == nil)
  }

  /// The user and password in the URL of a redirection are sent to the original server only. The expected values
  /// are those that curl 7.88.1 sends.
  @Test(arguments: [
    ("http://a:b@", [], "http://c:d@/anything", "Basic Yzpk"), ("http://a:b@", [], "http:///anything", "Basic YTpi"),
    ("http://", [], "http://c:d@/anything", "Basic Yzpk"),
    ("http://a:b@", [], "http://c%40:d%3A@/anything", "Basic Y0A6ZDo="),
    ("http://a:b@", [], "http://c@/anything", "Basic Yzo="),
    ("http://a:b@", ["-u", "x:y"], "http://c:d@/anything", "Basic eDp5"),
    ("http://a:b@", ["-H", "Authorization: own"], "http://c:d@/anything", "own"),
  ])
  func credentialsOfARedirection(start: String, options: [String], next: String, sent: String) async throws {
    let target = next.replacing("/anything", with: "\(server.authority)/anything")
    server.route("GET", "/moved") { _ in TestServer.Response(status: 302, fields: ["Location": target]) }
    let result = try await Command(["get", start + server.authority + "/moved", "-L"] + options).end()
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.requests.map(\.path) == ["/moved", "/anything"])
    #expect(server.requests.last?.fields.values("Authorization") == [sent])
  }

  @Test func credentialsForAnotherServer() async throws {
    let other = try TestServer()
    let target = "http://c:d@\(other.authority)/anything"
    server.route("GET", "/moved") { _ in TestServer.Response(status: 302, fields: ["Location": target]) }
    #expect(try await Command.run("get", "http://a:b@\(server.authority)/moved", "-L").status == 0)
    #expect(other.requests.map { $0.fields["Authorization"] } == [nil])
  }

  @Test func digestOfARedirection() async throws {
    lock()
    let target = "http://Mufasa:x@\(server.authority)/locked"
    server.route("GET", "/moved") { _ in TestServer.Response(status: 302, fields: ["Location": target]) }
    let result = try await Command.run("get", "http://Scar:y@\(server.authority)/moved", "-L", "--digest")
    #expect(result.text == "open", "\(result.errors)")
  }

  // MARK: - Redirections

  @Test func redirections() async throws {
    let result = try await get("/redirect/3", "-L")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text.contains("\"target\": \"/get\"") || result.text.contains("\"target\":\"/get\""))
    #expect(server.requestsReceived == 4)
    let first = try await get("/redirect/3", "--metrics")
    #expect(first.status == 0)
    #expect(server.requestsReceived == 5)
  }

  @Test func asManyRedirectionsAsAreFollowed() async throws {
    #expect(try await get("/redirect/20", "-L").status == 0)
    let result = try await get("/redirect/21", "-L")
    #expect(result.status == 47, "\(result.errors)")
    #expect(result.text == "")
  }

  // MARK: - Cookies

  @Test func cookies() async throws {
    server.route("GET", "/set") { _ in
      var response = TestServer.Response.text("set")
      response.fields.add("Set-Cookie", "fresh=1; Path=/; HttpOnly; Max-Age=1000000")
      response.fields.add("Set-Cookie", "passing=2")
      return response
    }
    let jar = directory.path("jar")
    try directory.write(
      "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\told\tyes\nnonsense\n"
        + "other.example\tFALSE\t/\tFALSE\t0\telsewhere\tx\n", to: "jar")
    let first = try await get("/set", "-b", jar, "-c", jar)
    #expect(first.status == 0, "\(first.errors)")
    #expect(server.requests.last?.fields["Cookie"] == "old=yes")
    let text = try directory.text(of: "jar")
    #expect(text.hasPrefix("# Netscape HTTP Cookie File\n"))
    #expect(text.contains("\n127.0.0.1\tFALSE\t/\tFALSE\t0\told\tyes\n"))
    #expect(text.contains("\nother.example\tFALSE\t/\tFALSE\t0\telsewhere\tx\n"))
    #expect(text.contains(/\n#HttpOnly_127\.0\.0\.1\tFALSE\t\/\tFALSE\t\d{10,}\tfresh\t1\n/))
    #expect(text.contains("\n127.0.0.1\tFALSE\t/\tFALSE\t0\tpassing\t2\n"))
    #expect(directory.names == ["jar"])

    #expect(try await get("/anything", "-b", jar, "--cookie-jar", jar).status == 0)
    let sent = try #require(server.requests.last?.fields["Cookie"])
    #expect(Set(sent.split(separator: "; ")) == ["old=yes", "fresh=1", "passing=2"])
  }

  /// A cookie with a tab is not written, since the format separates its columns with tabs. Unicode line separators stay
  /// in the value.
  @Test func cookiesThatAreReadAgain() async throws {
    server.route("GET", "/set") { _ in
      var response = TestServer.Response.text("set")
      for cookie in ["a=1\t2", "b\tc=1", "d=\u{2028}\u{85}x", "e=", "=f", "g=1; Path=/\tx"] {
        response.fields.add("Set-Cookie", cookie)
      }
      return response
    }
    let jar = directory.path("jar")
    #expect(try await get("/set", "-b", jar, "-c", jar).status == 0)
    let text = try directory.text(of: "jar")
    #expect(text.utf8.split(separator: UInt8(ascii: "\n")).dropFirst().allSatisfy { $0.count { $0 == 9 } == 6 })
    #expect(try await get("/anything", "-b", jar, "--cookie-jar", jar).status == 0)
    #expect(server.requests.last?.fields["Cookie"] == "d=\u{2028}\u{85}x; e=; f")
    #expect(try directory.text(of: "jar") == text)
  }

  /// Cookies of a file are checked by the rules for cookies of a server.
  @Test func cookiesThatNoServerCouldSet() async throws {
    let lines = [
      "127.0.0.1\tFALSE\t/\tFALSE\t0\tgood\t1", "127.0.0.1\tFALSE\t/\tFALSE\t0\tempty",
      ".co.uk\tTRUE\t/\tFALSE\t0\tsuffix\t1", "com\tTRUE\t/\tFALSE\t0\tsuffix\t1",
      "co.uk\tFALSE\t/\tFALSE\t0\town\t1", ".example.co.uk\tTRUE\t/\tFALSE\t0\tbelow\t1",
      "a.example\tFALSE\t/\tFALSE\t0\t__Secure-a\t1", "a.example\tFALSE\t/\tTRUE\t0\t__Secure-b\t1",
      ".a.example\tTRUE\t/\tTRUE\t0\t__Host-a\t1", "a.example\tFALSE\t/x\tTRUE\t0\t__host-b\t1",
      "a.example\tFALSE\t/\tFALSE\t0\t__Host-c\t1", "a.example\tFALSE\t/\tTRUE\t0\t__Host-d\t1",
      "a.example\tFALSE\t/\tFALSE\t0\t\t__Secure-x=1", "127.0.0.1\tFALSE\t/\tFALSE\t0\tmore\t1; admin=1",
      "127.0.0.1\tFALSE\t/\tFALSE\t0\tx=y\t1", "127.0.0.1\tFALSE\t/\tFALSE\t0\tmark\t1;\u{301}a=b",
      "127.0.0.1\tFALSE\t/\tFALSE\t-5\tpast\t1",
    ]
    try directory.write(lines.joined(separator: "\n") + "\r\n", to: "jar")
    #expect(try await get("/anything", "-b", directory.path("jar"), "-c", directory.path("jar")).status == 0)
    #expect(server.requests.last?.fields["Cookie"] == "good=1; empty=")
    let names = try directory.text(of: "jar").split(separator: "\n").dropFirst().map { line in
      String(line.split(separator: "\t", omittingEmptySubsequences: false)[5])
    }
    #expect(names == ["good", "empty", "own", "below", "__Secure-b", "__Host-d"])
  }

  @Test func cookiesOfAFileThatIsNotThere() async throws {
    let result = try await get("/anything", "-b", directory.path("jar"), "-c", directory.path("jar"))
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.requests.last?.fields["Cookie"] == nil)
    #expect(try directory.text(of: "jar") == "# Netscape HTTP Cookie File\n")
  }

  @Test func cookiesThatCannotBeKept() async throws {
    let result = try await get("/anything", "-b", directory.path)
    #expect(result.status == 26)
    let unwritable = try await get("/anything", "--cookie-jar", directory.path("no/jar"))
    #expect(unwritable.status == 23)
  }
}
