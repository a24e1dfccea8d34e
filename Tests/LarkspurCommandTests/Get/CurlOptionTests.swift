import LarkspurTestServer
import TestKit
import Testing

/// Tests the options of `larkspur get` that have the meaning of curl's. The expected requests are those that curl 7.88.1
/// sends.
@Suite struct CurlOptionTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func run(_ path: String, _ arguments: [String], input: [UInt8] = []) async throws -> Command.Result {
    try await Command([server.url(path)] + arguments, directory: directory.path).end(input: input)
  }

  private func request(_ arguments: String..., path: String = "/anything") async throws -> TestServer.Request {
    let result = try await run(path, arguments)
    try #require(result.status == 0, "\(result.errors)")
    return try #require(server.requests.last)
  }

  // MARK: - Requests

  @Test func head() async throws {
    let result = try await run("/bytes/5", ["-I"])
    #expect(server.requests.last?.method == "HEAD")
    #expect(result.text.hasPrefix("HTTP/1.1 200 OK\r\n") && result.text.hasSuffix("\r\n\r\n"))
    let query = try await request("-IG", "-d", "a=1", path: "/bytes/5")
    #expect(query.method == "HEAD" && query.target == "/bytes/5?a=1")
  }

  @Test func userAgentAndReferer() async throws {
    #expect(try await request("-A", "me 1").fields.values("User-Agent") == ["me 1"])
    #expect(try await request("-A", "").fields["User-Agent"] == nil)
    #expect(try await request("-A", " ").fields.values("User-Agent") == [""])
    #expect(try await request("-A", "me", "-H", "User-Agent: you").fields.values("User-Agent") == ["you"])
    #expect(try await request("-e", "http://a/").fields.values("Referer") == ["http://a/"])
    #expect(try await request("-e", ";auto").fields["Referer"] == nil)
  }

  /// The option has no counterpart in curl.
  @Test func compressedData() async throws {
    let text = String(repeating: "a", count: 1000)
    let request = try await request("--compress", "-d", text)
    #expect(request.fields["Content-Encoding"] == "gzip" && request.body.starts(with: [0x1f, 0x8b]))
    #expect(request.bodyCount < 100 && request.fields["Content-Length"] == "\(request.bodyCount)")
    let form = try await self.request("--compress", "-F", "a=\(text)")
    #expect(form.fields["Content-Encoding"] == "gzip" && form.bodyCount < 500)
    #expect(try await self.request("-d", text).fields["Content-Encoding"] == nil)
  }

  /// User, password and fragment of a URL are not in the `Referer` of a redirection.
  @Test func refererOfARedirection() async throws {
    let url = "http://u:p@\(server.authority)/redirect/2#part"
    #expect(try await Command([url, "-L", "-e", "http://a/;auto"]).end().status == 0)
    #expect(
      server.requests.map { $0.fields["Referer"] } == [
        "http://a/", server.url("/redirect/2"), server.url("/redirect/1"),
      ])
  }

  @Test func data() async throws {
    try directory.write("l 1\r\nl&2\n", to: "f")
    #expect(try await request("--data-raw", "@f").bodyText == "@f")
    #expect(try await request("--data-binary", "@f").bodyText == "l 1\r\nl&2\n")
    #expect(try await request("--data-urlencode", "n=a b+c&ü~*", "-d", "x").bodyText == "n=a+b%2Bc%26%C3%BC~%2A&x")
    #expect(try await request("--data-urlencode", "n@f").bodyText == "n=l+1%0D%0Al%262%0A")
    #expect(try await request("--data-urlencode", "@f").bodyText == "l+1%0D%0Al%262%0A")
    #expect(try await request("--data-urlencode", "=x=y").bodyText == "x%3Dy")
    #expect(try await request("--data-urlencode", "%41").bodyText == "%2541")
  }

  @Test func query() async throws {
    let request = try await request("-G", "-d", "a=1", "-d", "b=2 3#4", path: "/anything?q=1#part")
    #expect(request.method == "GET")
    #expect(request.target == "/anything?q=1&a=1&b=2%203%234")
    #expect(request.fields["Content-Type"] == nil && request.fields["Content-Length"] == nil)
    #expect(try await self.request("-G", "--data-urlencode", "a=ü").target == "/anything?a=%C3%BC")
    #expect(try await self.request("-G").target == "/anything")
    #expect(try await self.request("-G", "-X", "PUT", "-d", "a").method == "PUT")
  }

  @Test func bearerToken() async throws {
    let request = try await request("--oauth2-bearer", "T", "-u", "a:b")
    #expect(request.fields.values("Authorization") == ["Bearer T"])
    let url = "http://u:p@\(server.authority)/anything"
    #expect(try await Command([url, "--oauth2-bearer", "T"]).end().status == 0)
    #expect(server.requests.last?.fields.values("Authorization") == ["Bearer T"])
  }

  @Test func addressFamilies() async throws {
    #expect(try await Command(["localhost:\(server.port)/bytes/9", "-4"]).end().status == 0)
    let other = try await Command(["localhost:\(server.port)/bytes/9", "-6"]).end()
    #expect(other.status == 7)
    #expect(!other.errors.contains("127.0.0.1"))
    let literal = try await run("/bytes/9", ["-6"])
    #expect(literal.status == 6)
    #expect(literal.errors == "larkspur: could not resolve 127.0.0.1: it has no IPv6 address\n")
  }

  /// A line break in a value would begin another field.
  @Test(arguments: ["-A", "-e", "--oauth2-bearer"]) func injectedFields(option: String) async throws {
    let result = try await run("/", [option, "a\r\nX: y"])
    #expect(result.status == 2)
    #expect(result.errors.hasPrefix("larkspur: the request cannot be sent: "))
    #expect(try await run("/", ["-b", "a=b\nX: y"]).status == 2)
    #expect(server.connectionsAccepted == 0)
  }

  // MARK: - Cookies

  @Test func cookies() async throws {
    #expect(try await request("-b", "a=1", "-b", "c=2; d=3").fields.values("Cookie") == ["a=1; c=2; d=3"])
    try directory.write("127.0.0.1\tFALSE\t/\tFALSE\t0\told\tyes\n", to: "jar")
    #expect(try await request("-b", "jar").fields.values("Cookie") == ["old=yes"])
    #expect(try await request("-b", "jar", "-b", "a=1").fields.values("Cookie") == ["old=yes; a=1"])
    #expect(try directory.text(of: "jar") == "127.0.0.1\tFALSE\t/\tFALSE\t0\told\tyes\n")
    #expect(try await request("-c", "jar").fields["Cookie"] == nil)
    #expect(try directory.text(of: "jar") == "# Netscape HTTP Cookie File\n")
    #expect(try await run("/bytes/0", ["-b", "none", "-c", "-"]).text == "# Netscape HTTP Cookie File\n")
    let line = Array("127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tb\n".utf8)
    #expect(try await run("/anything", ["-b", "-"], input: line).status == 0)
    #expect(server.requests.last?.fields["Cookie"] == "a=b")
    try directory.write("Set-Cookie: a=b\n", to: "fields")
    #expect(try await run("/anything", ["-b", "fields"]).status == 26)
  }

  /// Cookies of the command line are not sent to another server.
  @Test func cookiesOfARedirection() async throws {
    let other = try TestServer()
    let result = try await run("/redirect-to?url=\(other.url("/anything"))", ["-L", "-b", "a=1"])
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.requests.last?.fields["Cookie"] == "a=1")
    #expect(other.requests.last?.fields["Cookie"] == nil)
  }

  // MARK: - Output

  /// The name is the URL's, whatever the server says.
  @Test func remoteName() async throws {
    server.route("GET", "/a/%2e%2e%2fname") { _ in
      TestServer.Response(fields: ["Content-Disposition": "attachment; filename=\"../evil\""], body: .text("x"))
    }
    let result = try await run("/a/%2e%2e%2fname?q=/y", ["-O"])
    #expect(result.status == 0, "\(result.errors)")
    #expect(directory.names == ["%2e%2e%2fname"])
    for path in ["/", "/a/", "/a/..", "/.", "/?a"] {
      #expect(try await run(path, ["-O"]).status == 23, "\(path)")
    }
    #expect(directory.names == ["%2e%2e%2fname"])
  }

  @Test func silence() async throws {
    #expect(try await Command(["127.0.0.1:1", "-s"]).end().errors == "")
    #expect(try await Command(["127.0.0.1:1", "-sS"]).end().errors.hasPrefix("larkspur: could not connect"))
    #expect(try await Command(["127.0.0.1:1", "-s"]).end().status == 7)
    #expect(try await Command(["127.0.0.1:1", "-s", "--nonsense"]).end().errors != "")
  }

  @Test func dumpedHeads() async throws {
    let result = try await run("/status/404", ["-f", "-D", "heads"])
    #expect(result.status == 22)
    #expect(try directory.text(of: "heads").hasPrefix("HTTP/1.1 404 Not Found\r\n"))
    let shown = try await run("/bytes/1", ["-D", "-", "-o", "body"])
    #expect(shown.text.hasPrefix("HTTP/1.1 200 OK\r\n") && shown.text.hasSuffix("\r\n\r\n"))
    #expect(try await Command(["127.0.0.1:1", "-D", directory.path("none")]).end().status == 7)
    #expect(try directory.text(of: "none") == "")
    #expect(try await run("/bytes/1", ["-o", "new", "-D", "missing/heads"]).status == 23)
    #expect(directory.names.sorted() == ["body", "heads", "none"])
  }

  @Test func failureWithBody() async throws {
    server.route("GET", "/no") { _ in TestServer.Response(status: 404, fields: [:], body: .text("why")) }
    let result = try await run("/no", ["--fail-with-body", "-o", "body"])
    #expect(result.status == 22)
    #expect(result.errors == "larkspur: \(server.authority): the server answered with 404 Not Found\n")
    #expect(try directory.text(of: "body") == "why")
    #expect(try await run("/bytes/1", ["--fail-with-body"]).status == 0)
  }

  @Test func redirectionLimit() async throws {
    #expect(try await run("/redirect/2", ["-L", "--max-redirs", "2"]).status == 0)
    let result = try await run("/redirect/3", ["-L", "--max-redirs", "2"])
    #expect(result.status == 47)
    #expect(result.text == "")
    #expect(result.errors.contains("redirect"), "\(result.errors)")
    #expect(try await run("/redirect/1", ["-L", "--max-redirs", "0"]).status == 47)
    #expect(try await run("/redirect/1", ["--max-redirs", "0"]).status == 0)
  }
}
