import LarkspurTestServer
import TestKit
import Testing

/// Tests `--etag-file` and `--output-dir` of `larkspur get`.
@Suite struct EntityTagFileTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String...) async throws -> Command.Result {
    try await Command(
      ["get", server.url(path), "--etag-file", "tag", "--retry", "0"] + arguments, directory: directory.path
    ).end()
  }

  private var condition: String? { server.requests.last?.fields["If-None-Match"] }

  @Test func unchanged() async throws {
    #expect(try await get("/etag/one", "-o", "file").status == 0)
    #expect(try directory.text(of: "tag") == "\"one\"\n")
    #expect(condition == nil)
    let content = try directory.text(of: "file")
    let same = try await get("/etag/one", "-o", "file")
    #expect(same.status == 0 && same.errors == "" && condition == "\"one\"")
    #expect(try directory.text(of: "file") == content)
    #expect(try directory.text(of: "tag") == "\"one\"\n")
    #expect(directory.names == ["file", "tag"])
    #expect(try await get("/etag/two", "-o", "file").status == 0)
    #expect(try directory.text(of: "file") == "the tag is \"two\"\n")
    #expect(try directory.text(of: "tag") == "\"two\"\n")
    // Standard output has no earlier version that could be missing.
    #expect(try await get("/etag/two").output == [])
  }

  /// The tag of a file that is not there asks for nothing, and a response that fails changes no tag.
  @Test func theTagBelongsToTheFile() async throws {
    try directory.write("\"one\"", to: "tag")
    #expect(try await get("/etag/one", "-o", "file").status == 0)
    #expect(condition == nil && directory.names == ["file", "tag"])
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nETag: \"two\"\r\n\r\nhalf"), .close,
    ])
    #expect(try await get("/", "-o", "file").status == 18)
    #expect(condition == "\"one\"")
    #expect(try directory.text(of: "tag") == "\"one\"\n")
    #expect(try await get("/status/404", "-o", "other").status == 0)
    #expect(try directory.text(of: "tag") == "\"one\"\n")
    // The new version has no tag.
    #expect(try await get("/bytes/1", "-o", "file").status == 0)
    #expect(try directory.text(of: "tag") == "")
  }

  @Test func directories() async throws {
    try directory.write("x", to: "file")
    #expect(try await get("/bytes/1", "-O", "--output-dir", "none").status == 23)
    #expect(try await get("/bytes/1", "-O", "--output-dir", "file").status == 23)
    #expect(try await get("/bytes/1", "-O", "--output-dir", directory.path).status == 0)
    #expect(try await get("/bytes/2", "-o", "two", "--output-dir", "./").status == 0)
    #expect(directory.names == ["1", "file", "tag", "two"])
    for (arguments, message) in [
      (["--resume", "-O"], "--etag-file and --resume exclude each other"),
      (["-d", "x"], "--etag-file is for GET only"),
    ] {
      let result = try await Command(["get", server.url("/"), "--etag-file", "tag"] + arguments).end()
      #expect(result.status == 2 && result.errors.contains(message))
    }
  }
}
