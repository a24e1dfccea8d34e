import LarkspurTestServer
import TestKit
import Testing

/// Tests the requests that `larkspur get` sends.
@Suite struct RequestTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  /// Runs `larkspur get`.
  ///
  /// - Returns: The request that the server received.
  private func request(
    _ arguments: String..., path: String = "/anything", input: [UInt8] = []
  ) async throws -> TestServer.Request {
    let result = try await Command(["get", server.url(path)] + arguments).end(input: input)
    try #require(result.status == 0, "\(result.errors)")
    return try #require(server.requests.last)
  }

  private func names(_ request: TestServer.Request) -> [String] { request.fields.map(\.name) }

  @Test func defaults() async throws {
    let request = try await request()
    #expect(request.method == "GET")
    #expect(request.target == "/anything")
    #expect(names(request) == ["Host", "User-Agent", "Accept"])
    #expect(request.fields["Host"] == server.authority)
    #expect(request.fields["User-Agent"]?.hasPrefix("larkspur/") == true)
    #expect(request.fields["Accept"] == "*/*")
    #expect(request.bodyCount == 0)
  }

  @Test func fieldsReplaceDefaults() async throws {
    let request = try await request(
      "-H", "host: other.example", "-H", "USER-AGENT: me", "-H", "accept: text/html", "-H", "X: 1", "-H", "X: 2")
    #expect(request.fields.values("Host") == ["other.example"])
    #expect(request.fields.values("User-Agent") == ["me"])
    #expect(request.fields.values("Accept") == ["text/html"])
    #expect(request.fields.values("X") == ["1", "2"])
    #expect(names(request) == ["Host", "USER-AGENT", "accept", "X", "X"])
  }

  @Test func fieldsThatAreTakenAway() async throws {
    let request = try await request("-H", "User-Agent:", "-H", "accept: ", "-H", "Host:", "-H", "Nothing:")
    #expect(names(request) == ["Host"])
    #expect(request.fields["Host"] == "")
  }

  @Test func data() async throws {
    let request = try await request("-d", "a=1", "-d", "b=ü")
    #expect(request.method == "POST")
    #expect(request.bodyText == "a=1&b=ü")
    #expect(request.fields["Content-Type"] == "application/x-www-form-urlencoded")
    #expect(request.fields["Content-Length"] == "8")
  }

  @Test func emptyData() async throws {
    let request = try await request("-d", "")
    #expect(request.method == "POST")
    #expect(request.fields["Content-Length"] == "0")
  }

  @Test func dataOfAnotherKind() async throws {
    let request = try await request("-X", "PUT", "-d", "{}", "-H", "content-type: application/json")
    #expect(request.method == "PUT")
    #expect(request.fields.values("Content-Type") == ["application/json"])
    #expect(request.bodyText == "{}")
  }

  @Test func typeThatIsTakenAway() async throws {
    let request = try await request("-d", "a=1", "-H", "Content-Type:")
    #expect(names(request) == ["Host", "User-Agent", "Accept", "Content-Length"])
  }

  @Test func dataOfAFile() async throws {
    let text = String(repeating: "line\r\n\0", count: 1_000_000)
    try directory.write(text, to: "data")
    let request = try await request("-d", "@" + directory.path("data"))
    #expect(request.bodyCount == text.utf8.count)
    #expect(request.bodyChecksum == TestServer.Checksum(Array(text.utf8)))
  }

  @Test func dataOfStandardInput() async throws {
    let request = try await request("-d", "a=b", "-d@-", input: Array("from\nstdin".utf8))
    #expect(request.bodyText == "a=b&from\nstdin")
  }

  @Test func dataThatCannotBeRead() async throws {
    let result = try await Command.run("get", server.url(), "-d", "@" + directory.path("missing"))
    #expect(result.status == 26)
    #expect(
      result.errors == "larkspur: could not read \(directory.path("missing")): No such file or directory (ENOENT)\n")
    #expect(server.connectionsAccepted == 0)
  }

  @Test(arguments: ["DELETE", "OPTIONS", "get", "M-SEARCH", "HEAD"])
  func methods(method: String) async throws {
    #expect(try await request("-X", method).method == method)
  }

  @Test func basicAuthorization() async throws {
    let url = "http://us%65r:p%40ss@\(server.authority)/anything"
    #expect(try await Command.run("get", url).status == 0)
    #expect(server.requests.last?.fields["Authorization"] == "Basic dXNlcjpwQHNz")
    #expect(try await Command.run("get", url, "-H", "Authorization: Other x").status == 0)
    #expect(server.requests.last?.fields.values("Authorization") == ["Other x"])
  }

  @Test func targets() async throws {
    #expect(try await request(path: "/anything/a b?q=ü#fragment").target == "/anything/a%20b?q=%C3%BC")
    server.route("GET", "/", respond: { _ in .text("root") })
    #expect(try await Command.run("get", "http://\(server.authority)").text == "root")
    #expect(try await Command.run("get", server.authority + "?x").text == "root")
    #expect(server.requests.last?.target == "/?x")
  }

  /// The target is sent as it is given, with dot segments and without more percent-encoding.
  @Test(arguments: [[], ["-L"]]) func targetsAsGiven(options: [String]) async throws {
    let target = "/anything/../%7e/./a?b[]=1|2^3&c=/../d"
    server.defaultScript = [.expectRequest("GET", target), .send("HTTP/1.1 204 No Content\r\n\r\n"), .expectClose]
    let result = try await Command(["get", server.url(target)] + options).end()
    #expect(result.status == 0, "\(result.errors)")
  }

  @Test func ipv6() async throws {
    var options = TestServer.Options()
    options.address = .ipv6
    let server = try TestServer(options)
    #expect(try await Command.run("get", server.url("/bytes/9")).output == TestServer.content(count: 9))
    #expect(server.requests.last?.fields["Host"] == server.authority)
  }

  /// On most systems `localhost` has an IPv4 and an IPv6 address, of which the server listens on one.
  @Test func nameWithSeveralAddresses() async throws {
    #expect(try await Command.run("get", "localhost:\(server.port)/bytes/9").output == TestServer.content(count: 9))
    #expect(server.requests.last?.fields["Host"] == "localhost:\(server.port)")
  }

  /// Arguments that would change the framing of the request are refused, and nothing is sent.
  @Test(arguments: [
    (["-H", "A: b\r\nC: d"], "the value of A holds a control character"),
    (["-H", "A b: c"], "the field name \"A b\" is not a token"),
    (["-H", ": c"], "the field name \"\" is not a token"),
    (["-H", "Host: a\nb"], "the value of Host holds a control character"),
    (["-H", "Content-Length: 5"], "Content-Length follows from the request and cannot be set"),
    (["-H", "transfer-encoding: chunked"], "transfer-encoding follows from the request and cannot be set"),
    (["-X", "GET /"], "the method \"GET /\" is not a token"),
    (["-X", ""], "the method \"\" is not a token"),
  ])
  func refused(arguments: [String], message: String) async throws {
    let result = try await Command(["get", server.url()] + arguments).end()
    #expect(result.status == 2)
    #expect(result.errors == "larkspur: the request cannot be sent: \(message)\n")
    #expect(server.connectionsAccepted == 0)
  }
}
