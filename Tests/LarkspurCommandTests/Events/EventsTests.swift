import Foundation
import Glibc
import LarkspurTestServer
import TestKit
import Testing

/// Tests `larkspur events` with scripts of the test server.
@Suite struct EventsTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
  private static let end: TestServer.Script = [
    .expectRequest, .send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), .close,
  ]

  /// Sends a stream that ends with the connection. The next try comes after a millisecond.
  private static func stream(_ text: String) -> TestServer.Script {
    [.expectRequest, .send(head + "retry: 1\n" + text), .close]
  }

  private func run(_ arguments: String...) async throws -> Command.Result {
    try await Command(["events", server.url("/events")] + arguments).end()
  }

  @Test func lines() async throws {
    server.enqueue(
      Self.stream("data: one\n\nevent: song\nid: 7\ndata: two\ndata: lines\n\n: comment\n\n"),
      Self.stream("data: three\n\ndata: cut off\n"), Self.end)
    let result = try await run("-H", "X-A: 1")
    #expect(result.status == 0)
    #expect(result.errors == "")
    #expect(result.text == "message: one\nsong: two\\x0alines\nmessage: three\n")
    #expect(server.requests.map { $0.fields["Last-Event-ID"] } == [nil, "7", "7"])
    for request in server.requests {
      #expect(request.fields["Accept"] == "text/event-stream")
      #expect(request.fields["Cache-Control"] == "no-store")
      #expect(request.fields["X-A"] == "1")
    }
  }

  @Test func json() async throws {
    server.enqueue(Self.stream("id: 1\ndata: a\ndata: b \"c\"\n\n"), Self.end)
    let result = try await run("--json-lines", "-H", "Accept: x/y")
    #expect(result.text == "{\"event\":\"message\",\"id\":\"1\",\"data\":\"a\\nb \\\"c\\\"\"}\n")
    let object = try JSONSerialization.jsonObject(with: Data(result.output)) as? [String: String]
    #expect(object == ["event": "message", "id": "1", "data": "a\nb \"c\""])
    #expect(server.requests.first?.fields["Accept"] == "x/y")
  }

  /// A stream that answers a POST ends with its connection: the request is not sent again.
  @Test(arguments: [["-d", "[1]"], ["--json", "[1]"], ["-X", "PUT", "--data-raw", "[1]"]])
  func requestWithContent(more: [String]) async throws {
    server.enqueue(Self.stream("data: 1\n\n"))
    let result = try await Command(["events", server.url("/events")] + more).end()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text == "message: 1\n")
    #expect(server.requests.map(\.method) == [more.contains("PUT") ? "PUT" : "POST"])
    #expect(server.requests.map(\.bodyText) == ["[1]"])
    #expect(server.requests.map { $0.fields.values("Accept") } == [["text/event-stream"]])
    let type = more.contains("--json") ? "application/json" : "application/x-www-form-urlencoded"
    #expect(server.requests.map { $0.fields.values("Content-Type") } == [[type]])
  }

  @Test func cookies() async throws {
    let jar = try TemporaryDirectory()
    try jar.write("127.0.0.1\tFALSE\t/\tFALSE\t0\told\tyes\n", to: "jar")
    server.enqueue(Self.stream("data: 1\n\n"), Self.end)
    #expect(try await run("-b", jar.path("jar"), "-b", "a=1").status == 0)
    #expect(server.requests.map { $0.fields.values("Cookie") } == [["old=yes; a=1"], ["old=yes; a=1"]])
  }

  /// A failed try is reported, and then the command tries again.
  @Test(
    arguments: [
      ([.reset], "the connection broke while waiting for the response: Connection reset by peer (ECONNRESET)"),
      (
        [.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .close],
        "the server answered with 503 Service Unavailable"
      ),
    ] as [(TestServer.Script, String)])
  func failedTries(script: TestServer.Script, message: String) async throws {
    server.enqueue(Self.stream("data: 1\n\n"), [.expectRequest] + script, Self.end)
    let result = try await run()
    #expect(result.status == 0)
    #expect(result.text == "message: 1\n")
    #expect(result.errors.hasPrefix("larkspur: \(server.authority): \(message); the next try is in "))
    server.enqueue(Self.stream("data: 1\n\n"), [.expectRequest] + script, Self.end)
    #expect(try await run("-s").errors == "")
  }

  /// The message has the address once.
  @Test(arguments: [["events", "--no-reconnect"], ["socket"], ["get"]]) func refusedPort(command: [String]) async throws
  {
    let result = try await Command(command + ["127.0.0.1:1"]).end()
    #expect(result.status == 7)
    #expect(result.errors == "larkspur: could not connect to 127.0.0.1:1 (Connection refused (ECONNREFUSED))\n")
    let proxied = try await Command(command + ["a.invalid", "-x", "127.0.0.1:1"]).end()
    #expect(
      proxied.errors == "larkspur: a.invalid:80: could not connect to the proxy http://127.0.0.1:1 "
        + "(Connection refused (ECONNREFUSED))\n")
  }

  @Test(arguments: [[], ["--no-reconnect"]])
  func numberOfEvents(more: [String]) async throws {
    server.enqueue([.expectRequest, .send(Self.head + "data: 1\n\ndata: 2\n\ndata: 3\n\n"), .hang])
    let result = try await Command(
      ["events", server.url(), "--max-events", "2", "--last-event-id", "x7"] + more
    ).end()
    #expect(result.status == 0)
    #expect(result.text == "message: 1\nmessage: 2\n")
    #expect(server.requests.map { $0.fields["Last-Event-ID"] } == ["x7"])
  }

  @Test func oneConnection() async throws {
    server.enqueue(Self.stream("data: 1\n\n"))
    let result = try await run("--no-reconnect")
    #expect(result.status == 0)
    #expect(result.text == "message: 1\n")
    #expect(server.requestsReceived == 1)
    server.enqueue(Self.end)
    #expect(try await run("--no-reconnect").status == 0)
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\ndata: 1\n\n"),
      .close,
    ])
    let cut = try await run("--no-reconnect")
    #expect(cut.status == 18)
    #expect(cut.text == "message: 1\n")
    server.enqueue([.expectRequest, .close])
    #expect(try await run("--no-reconnect").status == 52)
    #expect(try await Command(["events", "127.0.0.1:1", "--no-reconnect"]).end().status == 7)
  }

  @Test(arguments: [[], ["--no-reconnect"]])
  func refusals(more: [String]) async throws {
    let missing = try await Command(["events", server.url("/status/404")] + more).end()
    #expect(missing.status == 22)
    #expect(missing.errors == "larkspur: \(server.authority): the server answered with 404 Not Found\n")
    let other = try await Command(["events", server.url("/get")] + more).end()
    #expect(other.status == 8)
    #expect(
      other.errors == "larkspur: \(server.authority): the server sends application/json, and not text/event-stream\n")
  }

  /// The source follows redirections, as the standard says.
  @Test func redirection() async throws {
    server.route("GET", "/news") { _ in
      TestServer.Response(fields: ["Content-Type": "text/event-stream"], body: .text("data: 1\n\n"))
    }
    let result = try await Command(
      ["events", server.url("/redirect-to?url=/news"), "--max-events", "1"]).end()
    #expect(result.status == 0)
    #expect(result.text == "message: 1\n")
  }

  @Test func trust() async throws {
    let fixture = try TLSServer()
    fixture.server.route("GET", "/news") { _ in
      TestServer.Response(fields: ["Content-Type": "text/event-stream"], body: .text("data: 1\n\n"))
    }
    let arguments = ["events", fixture.server.url("/news"), "--max-events", "1"]
    #expect(try await Command(arguments).end().status == 60)
    let trusted = try await Command(arguments + fixture.trust).end()
    #expect(trusted.status == 0)
    #expect(trusted.text == "message: 1\n")
  }

  @Test(arguments: [(["ftp://a/"], 1), (["http://a:0/"], 3), (["a", "-x", "ftp://p"], 5)] as [([String], Int32)])
  func failures(arguments: [String], status: Int32) async throws {
    let result = try await Command(["events"] + arguments).end()
    #expect(result.status == status)
    #expect(result.errors.hasPrefix("larkspur: "))
  }

  @Test func story() async throws {
    server.enqueue(Self.stream("data: 1\n\n"), Self.end)
    let result = try await run("-v")
    #expect(result.text == "message: 1\n")
    for words in [
      " ms  try 1\n> GET \(server.url("/events"))\n", " ms  the next try is in ", " ms  try 2\n", "< HTTP/1.1 200 OK\n",
      "< Content-Type: text/event-stream\n",
    ] {
      #expect(result.errors.contains(words), "\(words)")
    }
    server.enqueue(Self.stream("data: 1\n\n"))
    let single = try await run("-v", "--no-reconnect")
    #expect(single.errors.contains(" ms  try 1\n> GET \(server.url("/events"))\n"))
    #expect(!single.errors.contains("next try"))
  }

  @Test func signal() async throws {
    let isSent = TestServer.Signal()
    server.enqueue([.expectRequest, .send(Self.head + "data: 1\n\n"), .fire(isSent), .hang])
    let command = try Command(["events", server.url()])
    try await isSent.wait()
    command.send(signal: SIGINT)
    let result = try await command.end()
    #expect(result.status == 130)
    #expect(result.errors == "")
  }
}
