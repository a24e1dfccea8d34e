import LarkspurTestServer
import TestKit
import Testing

/// What `--har` and `--as-curl` write.
@Suite struct RecordTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// What the command records, the test server answers, byte for byte.
  @Test(arguments: ["/gzip/3000?token=secret", "/bytes/300000", "/redirect/2", "/chunked/1000?chunk=7"])
  func recordedAndReplayed(path: String) async throws {
    let server = try TestServer()
    let file = directory.path("record.har")
    let options = ["-L", "--compressed", "-H", "Authorization: Bearer secret"]
    let first = try await Command(["get", server.url(path), "--har", file] + options).end()
    #expect(first.errors == "")
    let recording = try TestServer.Recording(contentsOf: file)
    #expect(recording.entries.allSatisfy { $0.requestFields["Authorization"] == "(redacted)" })
    let replay = try TestServer(replaying: recording)
    let second = try await Command(["get", replay.url(path)] + options).end()
    #expect(second.status == 0)
    #expect(second.output == first.output)
    #expect(replay.failures.isEmpty)
  }

  @Test func commandOfCurl() async throws {
    let arguments = [
      "get", "http://me:pw@a.example/x?key=k", "--as-curl", "-d", "it's", "-A", "x", "-H", "Cookie: a=b",
    ]
    let hidden = try await Command(arguments).end()
    #expect(hidden.status == 0)
    #expect(!hidden.text.contains("a=b"))
    #expect(!hidden.text.contains("pw"))
    #expect(hidden.text.hasPrefix("curl "))
    let whole = try await Command(arguments + ["--with-secrets"]).end()
    #expect(whole.text.contains("--header 'Cookie: a=b'"))
    #expect(whole.text.contains("--data-raw 'it'\\''s'"))
    #expect(whole.text.contains("Authorization: Basic bWU6cHc="))
    #expect(try await Command(["get", "http://a.example/", "--with-secrets"]).end().status == 2)
  }
}
