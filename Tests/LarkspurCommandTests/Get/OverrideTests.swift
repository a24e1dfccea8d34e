import Foundation
import LarkspurTestServer
import LarkspurTransport
import TestKit
import Testing

@testable import LarkspurCommand

/// Tests the options that name other places for hosts.
@Suite struct OverrideTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func host(_ arguments: String...) async throws -> String? {
    let result = try await Command(["get"] + arguments).end()
    try #require(result.status == 0, "\(result.errors)")
    return server.requests.last?.fields["Host"]
  }

  @Test func otherPlaces() async throws {
    let port = server.port
    #expect(
      try await host("http://a.invalid:\(port)/get", "--resolve", "a.invalid:\(port):127.0.0.1")
        == "a.invalid:\(port)")
    #expect(
      try await host("http://a.invalid:\(port)/get", "--resolve", "*:\(port):[::1],127.0.0.1") == "a.invalid:\(port)")
    #expect(try await host("http://a.invalid/get", "--connect-to", "a.invalid:80:127.0.0.1:\(port)") == "a.invalid")
    #expect(
      try await host("http://a.invalid:\(port)/get", "--connect-to", "::127.0.0.1:") == "a.invalid:\(port)")
    // An empty second host is the URL's.
    #expect(try await host("http://127.0.0.1/get", "--connect-to", ":80::\(port)") == "127.0.0.1")
    #expect(try await host("http://127.0.0.1/get", "--connect-to", "127.0.0.1:::\(port)") == "127.0.0.1")
  }

  /// An API like Docker's.
  @Test func aUnixSocket() async throws {
    let directory = try TemporaryDirectory()
    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../LivePeers/unix_server.py")
    let python = Process()
    python.executableURL = URL(filePath: "/usr/bin/python3")
    python.arguments = ["-u", script.standardizedFileURL.path, directory.path("api.sock")]
    let output = Pipe()
    python.standardOutput = output
    try python.run()
    // Not by `terminate`: the process inherits the mask of a thread that blocks SIGTERM.
    defer { kill(python.processIdentifier, SIGKILL) }
    #expect(!output.fileHandleForReading.availableData.isEmpty)
    let result = try await Command([
      "get", "http://localhost/v1.41/version", "--unix-socket", directory.path("api.sock"),
    ]).end()
    #expect(result.text == #"{"Host": "localhost", "Path": "/v1.41/version"}"#, "\(result.errors)")
    let socket = ["--unix-socket", directory.path("api.sock")]
    let created = try await Command(
      ["get", "http://localhost/v1.41/containers/create", "--json", "{}", "-i"] + socket
    ).end()
    #expect(created.text.hasPrefix("HTTP/1.1 201 ") && created.text.hasSuffix("\r\n\r\n{}"), "\(created.errors)")
    let logs = try await Command(["get", "http://localhost/v1.41/containers/1/logs"] + socket).end()
    #expect(logs.text == "one\ntwo\n", "\(logs.errors)")
    let missing = try await Command(["get", "http://localhost/", "--unix-socket", directory.path("none")]).end()
    #expect(missing.status == 7 && missing.errors.contains("/none"), "\(missing.errors)")
    let useless = try await Command(["get", "http://localhost/", "--unix-socket", ""]).end()
    #expect(useless.status == 2 && useless.errors.contains("hostOverrides"), "\(useless.errors)")
  }

  @Test func theLocalEnd() async throws {
    #expect(try await host(server.url("/get"), "--interface", "lo") == server.authority)
    #expect(try await host(server.url("/get"), "--interface", "127.0.0.5") == server.authority)
    let count = server.connectionsAccepted
    for end in ["nosuch0", "203.0.113.1", "::1", ""] {
      let result = try await Command(["get", server.url("/get"), "--interface", end]).end()
      #expect(result.status == 45 && result.errors.contains("--interface"), "\(end): \(result.errors)")
    }
    #expect(server.connectionsAccepted == count)
  }

  /// A value that makes no sense names its option, and nothing is sent.
  @Test(
    arguments: [
      ["--unix-socket", "/" + String(repeating: "s", count: 199)], ["--resolve", "*:80:a.example"],
      ["--resolve", "*:80:192.0.2.1,,::1"], ["--connect-to", "::b.example:0"],
    ])
  func useless(arguments: [String]) async throws {
    let result = try await Command(["get", "http://a.invalid/"] + arguments).end()
    #expect(result.status == 2 && result.errors.contains("hostOverrides"), "\(result.errors)")
  }

  @Test(
    arguments: [
      ["--resolve", "a.example:80"], ["--resolve", "a.example:x:127.0.0.1"], ["--resolve", ":80:127.0.0.1"],
      ["--connect-to", "a:80:b"], ["--connect-to", "a:x:b:80"], ["--connect-to", "a:80:b:70000"],
    ])
  func malformed(arguments: [String]) {
    #expect(throws: UsageError.self) { try Invocation(parsing: (["get", "http://a.example/"] + arguments)[...]) }
  }
}
