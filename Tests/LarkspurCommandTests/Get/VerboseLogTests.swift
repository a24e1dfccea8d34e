import LarkspurTestServer
import Testing

/// Tests the output of `-v`.
@Suite struct VerboseLogTests {
  let server: TestServer

  init() throws {
    server = try TestServer()
  }

  /// The lines of the output with T in place of each time.
  private func logLines(_ result: Command.Result) -> [String] {
    result.errors.split(separator: "\n").map { line in
      guard line.hasPrefix("* "), let end = line.firstRange(of: " ms  ") else { return String(line) }
      #expect(Double(line.dropFirst(2).prefix { $0 != "m" }.filter { $0 != " " }) != nil)
      return "* T " + line[end.upperBound...]
    }
  }

  @Test func keptConnection() async throws {
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n"),
      .send("Content-Length: 5\r\n\r\nhello"), .expectClose,
    ])
    let result = try await Command.run("get", "-v", server.url("/x"), "-d", "abc", "-H", "User-Agent: me")
    #expect(result.text == "hello")
    let lines = logLines(result)
    let request = [
      "> POST /x HTTP/1.1", "> Host: \(server.authority)", "> Accept: */*",
      "> Content-Type: application/x-www-form-urlencoded", "> User-Agent: me", "> Content-Length: 3", ">",
    ]
    // Each line is sent with CRLF in place of "> ", and the last one has no blank; the body adds three bytes.
    let sent = request.map { $0.utf8.count }.reduce(0, +) + 1 + 3
    #expect(
      lines == [
        "* T resolving 127.0.0.1", "* T resolved: \(server.authority)", "* T connecting to \(server.authority)",
        "* T connected to \(server.authority)", "* T sending the request, \(sent) bytes with its body",
      ] + request + [
        "* T request sent", "* T interim response: 103", "* T response: 200, a head of 44 bytes", "< HTTP/1.1 200 OK",
        "< X: y", "< Content-Length: 5", "<", "* T first 5 bytes of the body", "* T complete: 5 bytes of body",
        "* T connection closed: not needed any more (it could have been used again)",
      ])
  }

  @Test func closedConnection() async throws {
    let lines = logLines(try await Command.run("get", "-v", server.url("/close-delimited/10")))
    #expect(
      lines.suffix(2) == ["* T complete: 10 bytes of body", "* T connection closed: the server does not keep it"])
  }

  @Test func failure() async throws {
    let lines = logLines(try await Command.run("get", "-v", server.url("/lie/1000?bytes=100")))
    #expect(
      lines.suffix(3) == [
        "* T failed after 100 bytes of body: bad response: the connection ended with 1000 bytes of the body missing",
        "* T connection closed: the exchange failed",
        "larkspur: \(server.authority): bad response: the connection ended with 1000 bytes of the body missing",
      ])
  }

  @Test func refusedConnection() async throws {
    // Port 1, which the kernel assigns to no test server.
    let port = 1
    let lines = logLines(try await Command.run("get", "-v", "localhost:\(port)"))
    #expect(lines.first == "* T resolving localhost")
    #expect(lines.contains("* T could not connect to 127.0.0.1:\(port): Connection refused (ECONNREFUSED)"))
  }
}
