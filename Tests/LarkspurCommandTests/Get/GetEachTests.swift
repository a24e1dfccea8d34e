import LarkspurTestServer
import TestKit
import Testing

/// Tests URLs that stand for several.
@Suite struct GetEachTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String..., input: [UInt8] = []) async throws -> Command.Result {
    try await Command(["get", server.url(path)] + arguments).end(input: input)
  }

  @Test func aFileForEach() async throws {
    let result = try await get(
      "/bytes/{3,5}?[1-2]", "-o", directory.path("n#1-#2"), "-w", #"%{url} %{size_download}\n"#)
    #expect(result.status == 0, "\(result.errors)")
    #expect(directory.names == ["n3-1", "n3-2", "n5-1", "n5-2"])
    #expect(try directory.bytes(of: "n5-2") == TestServer.content(count: 5))
    #expect(
      result.text.split(separator: "\n").map(String.init)
        == ["3?1 3", "3?2 3", "5?1 5", "5?2 5"].map { server.url("/bytes/\($0)") })
  }

  /// A failure does not stop the others, and a success does not hide it.
  @Test func theFirstFailureDecides() async throws {
    let result = try await get("/status/{200,404,200}", "-f", "-o", "/dev/null")
    #expect(result.status == 22)
    #expect(server.requests.map(\.target) == ["/status/200", "/status/404", "/status/200"])
  }

  // MARK: - Connections

  /// URLs of one server use its connection one after another.
  @Test func oneConnection() async throws {
    let format = #"%{num_connects} %{size_download}\n"#
    let result = try await get("/bytes/[3-5]", "-o", directory.path("n#1"), "-w", format)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text == "1 3\n0 4\n0 5\n")
    #expect(directory.names == ["n3", "n4", "n5"])
    #expect(server.connectionsAccepted == 1)
    #expect(server.requestsReceived == 3)
  }

  /// The log of the second URL begins with the connection of the first, and ends with its end.
  @Test func verboseLogOfOneConnection() async throws {
    let result = try await get("/bytes/[3-4]", "-v", "-o", "/dev/null")
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count { $0.contains(" ms  connected to ") } == 1, "\(result.errors)")
    #expect(lines.count { $0.hasSuffix(" ms  the connection is used again") } == 1)
    #expect(lines.count { $0.contains(" ms  connection closed: not needed any more") } == 1)
    #expect(lines.last?.contains("connection closed") == true)
  }

  /// A message about a response over a connection of an earlier URL has the connection's address.
  @Test func addressOfAnEarlierConnection() async throws {
    let authority = server.authority.replacing("127.0.0.1", with: "localhost")
    let result = try await Command.run(
      "get", "http://\(authority)/status/{200,404}", "-f", "-4", "-o", "/dev/null")
    #expect(result.status == 22)
    #expect(
      result.errors == "larkspur: \(authority) (\(server.authority)): the server answered with 404 Not Found\n")
    #expect(server.connectionsAccepted == 1)
  }

  /// A connection that fails is not used again, and each URL has all of its retries.
  @Test func connectionsAfterFailures() async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
    server.enqueue([.expectRequest, .send(head + "ab"), .reset])
    server.enqueue([.expectRequest, .send(head + "abcd"), .expectRequest, .send(head + "ab"), .reset])
    server.enqueue([.expectRequest, .send(head + "abcd"), .expectClose])
    let result = try await get("/[1-2]", "-o", directory.path("n#1"), "--retry", "1")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try directory.text(of: "n1") == "abcd")
    #expect(try directory.text(of: "n2") == "abcd")
    #expect(server.connectionsAccepted == 3)
  }

  /// Requests that cannot be repeated, and URLs of several users, have connections of their own.
  @Test(arguments: [["-d", "x"], ["-X", "PUT"], ["-b", "/nonexistent/file"]])
  func connectionsOfTheirOwn(options: [String]) async throws {
    let result = try await Command(["get", server.url("/anything?[1-2]"), "-o", "/dev/null"] + options).end()
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.connectionsAccepted == 2)
  }

  @Test func connectionsOfSeveralUsers() async throws {
    let result = try await Command.run("get", "http://{a,b}:x@\(server.authority)/anything", "-o", "/dev/null")
    #expect(result.status == 0, "\(result.errors)")
    #expect(server.connectionsAccepted == 2)
  }

  // MARK: - The text

  @Test func asItIs() async throws {
    #expect(try await get("/get?a={1,2}[3]", "-g").status == 0)
    #expect(server.requests.map(\.target) == ["/get?a=%7B1,2%7D[3]"])
  }

  /// What would be overwritten or read twice is refused before the first request.
  @Test func refusals() async throws {
    for option in [["-o", "x"], ["-D", "x"], ["--har", "x"], ["-c", "x"], ["-d", "@-"], ["-F", "a=@-"]] {
      let result = try await Command(["get", server.url("/{a,b}")] + option, directory: directory.path).end()
      #expect(result.status == 2, "\(option)")
    }
    let remote = try await Command(["get", server.url("/{a,b}/x"), "-O"], directory: directory.path).end()
    #expect(remote.status == 2)
    #expect(try await get("/{a,b}[1-2]", "-o", directory.path("#2")).status == 2)
    #expect(try await get("/[5-1]").status == 3)
    #expect(server.connectionsAccepted == 0)
    #expect(directory.names.isEmpty)
  }
}
