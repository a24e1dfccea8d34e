import Glibc
import LarkspurIO
import LarkspurTestServer
import TestKit
import Testing

/// Tests the output of `larkspur get` for a response.
@Suite struct OutputTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String...) async throws -> Command.Result {
    try await Command(["get", server.url(path)] + arguments).end()
  }

  @Test(arguments: [
    "/bytes/0", "/bytes/1", "/bytes/100000", "/bytes/20000000", "/chunked/100000?chunk=7", "/close-delimited/100000",
  ])
  func bodyToStandardOutput(path: String) async throws {
    let result = try await get(path)
    #expect(result.status == 0)
    #expect(result.errors == "")
    let count = try #require(Int(path.split(separator: "/")[1].prefix { $0.isNumber }))
    #expect(TestServer.Checksum(result.output) == TestServer.contentChecksum(count: count))
    #expect(result.output.count == count)
  }

  @Test func headBeforeBody() async throws {
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 103 Early\r\nX: y\r\n\r\nHTTP/1.1 200  odd\r\nA:1\r\nB:  2 \r\nContent-Length: 5\r\n\r\nhello"),
      .expectClose,
    ])
    let result = try await get("/", "-i")
    #expect(result.status == 0)
    #expect(result.text == "HTTP/1.1 200  odd\r\nA:1\r\nB:  2 \r\nContent-Length: 5\r\n\r\nhello")
  }

  @Test(arguments: ["HEAD", "GET"])
  func headOfAResponseWithoutBody(method: String) async throws {
    let result = try await get(method == "HEAD" ? "/bytes/1000" : "/status/204", "-i", "-X", method)
    #expect(result.status == 0)
    #expect(result.text.hasPrefix(method == "HEAD" ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 204 No Content\r\n"))
    #expect(result.text.hasSuffix("\r\n\r\n"))
  }

  @Test func errorStatusWithoutFail() async throws {
    let result = try await get("/status/404")
    #expect(result.status == 0)
    #expect(result.text.contains("404"))
  }

  @Test func fail() async throws {
    try directory.write("old", to: "file")
    for status in [400, 404, 503] {
      let result = try await get("/status/\(status)", "--fail", "-i", "--retry", "0", "-o", directory.path("file"))
      #expect(result.status == 22)
      #expect(result.text == "")
      #expect(result.errors.hasPrefix("larkspur: \(server.authority): the server answered with \(status) "))
    }
    #expect(try directory.text(of: "file") == "old")
    #expect(directory.names == ["file"])
    #expect(try await get("/status/399", "--fail").status == 0)
    // With `-f` and `-i` the head is written without the body, as curl does.
    let shown = try await get("/status/404", "-f", "-i")
    #expect(shown.status == 22)
    #expect(shown.text.hasPrefix("HTTP/1.1 404 Not Found\r\n") && shown.text.hasSuffix("\r\n\r\n"))
    #expect(try await get("/status/404", "-f").output == [])
  }

  // MARK: - Files

  @Test func newFile() async throws {
    let result = try await get("/bytes/100000", "-o", directory.path("new"))
    #expect(result.status == 0)
    #expect(result.output.isEmpty)
    #expect(result.errors == "")
    #expect(try directory.bytes(of: "new") == TestServer.content(count: 100_000))
    #expect(directory.names == ["new"])
  }

  @Test func fileWithHead() async throws {
    #expect(try await get("/bytes/3", "-io" + directory.path("new")).status == 0)
    #expect(try directory.text(of: "new").hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(try directory.bytes(of: "new").suffix(3) == TestServer.content(count: 3)[...])
  }

  @Test func emptyFile() async throws {
    #expect(try await get("/bytes/0", "-o", directory.path("new")).status == 0)
    #expect(try directory.text(of: "new") == "")
  }

  @Test func replacedFile() async throws {
    try directory.write(String(repeating: "old", count: 1000), to: "file")
    chmod(directory.path("file"), 0o640)
    #expect(try await get("/bytes/10", "-o", directory.path("file")).status == 0)
    #expect(try directory.bytes(of: "file") == TestServer.content(count: 10))
    #expect(try FilePaths.kind(of: directory.path("file")) == .regularFile(0o640))
    #expect(directory.names == ["file"])
  }

  @Test func linkStaysALink() async throws {
    try directory.write("old", to: "file")
    symlink("file", directory.path("link"))
    #expect(try await get("/bytes/10", "-o", directory.path("link")).status == 0)
    #expect(try directory.bytes(of: "file") == TestServer.content(count: 10))
    #expect(try FilePaths.resolved(directory.path("link")) == FilePaths.resolved(directory.path("file")))
  }

  /// A link to a file that does not exist, also through another link, stays a link, and the file is created.
  @Test func linkToNothingStaysALink() async throws {
    symlink("new", directory.path("link"))
    symlink(directory.path("link"), directory.path("other"))
    #expect(try await get("/bytes/10", "-o", directory.path("other")).status == 0)
    #expect(try directory.bytes(of: "new") == TestServer.content(count: 10))
    #expect(directory.names.sorted() == ["link", "new", "other"])
    symlink("round", directory.path("round"))
    #expect(try await get("/bytes/10", "-o", directory.path("round")).status == 23)
  }

  @Test(arguments: [200, 245, 255]) func longNames(count: Int) async throws {
    let name = String(repeating: "n", count: count)
    #expect(try await get("/bytes/10", "-o", directory.path(name)).status == 0)
    #expect(directory.names == [name])
  }

  @Test func deviceIsWrittenDirectly() async throws {
    #expect(try await get("/bytes/100000", "-o", "/dev/null").status == 0)
    #expect(try FilePaths.kind(of: "/dev/null") == .other)
  }

  @Test func dashIsStandardOutput() async throws {
    #expect(try await get("/bytes/10", "-o", "-").output == TestServer.content(count: 10))
  }

  /// A failed transfer leaves the old file as it was, and no other file.
  @Test(arguments: ["/lie/100", "/close", "/reset", "/nonsense"])
  func failureKeepsTheOldFile(path: String) async throws {
    server.route("GET", "/nonsense", script: [.send("nonsense\r\n\r\n"), .close])
    try directory.write("old", to: "file")
    #expect(try await get(path, "--retry", "0", "-o", directory.path("file")).status != 0)
    #expect(try await get(path, "--retry", "0", "-o", directory.path("new")).status != 0)
    #expect(try directory.text(of: "file") == "old")
    #expect(directory.names == ["file"])
  }

  @Test func failureBeforeTheConnection() async throws {
    let result = try await Command.run("get", "http://127.0.0.1:1/", "--retry", "0", "-o", directory.path("new"))
    #expect(result.status == 7)
    #expect(directory.names.isEmpty)
  }

  /// An output file that cannot be written is an error before the command connects.
  @Test func fileThatCannotBe() async throws {
    let missing = try await get("/get", "-o", directory.path("missing/file"))
    #expect(missing.status == 23)
    #expect(
      missing.errors
        == "larkspur: could not create \(directory.path("missing/file")): No such file or directory (ENOENT)\n")
    let isDirectory = try await get("/get", "-o", directory.path)
    #expect(isDirectory.status == 23)
    #expect(isDirectory.errors == "larkspur: could not create \(directory.path): Is a directory (EISDIR)\n")
    #expect(server.connectionsAccepted == 0)
  }

  @Test func fullDisk() async throws {
    let result = try await get("/bytes/100000", "-o", "/dev/full")
    #expect(result.status == 23)
    #expect(result.errors == "larkspur: could not write to /dev/full: No space left on device (ENOSPC)\n")
  }

  @Test func brokenPipe() async throws {
    let result = try await Command.run("get", server.url("/bytes/100000"), output: .broken)
    #expect(result.status == 23)
    #expect(result.errors == "")
    #expect(try await Command.run("help", output: .broken).status == 0)
  }

  // MARK: - Terminals

  /// As in curl, null bytes are written to a terminal only if `-o -` asks for it.
  @Test func nullBytesOnATerminal() async throws {
    server.route("GET", "/null") { _ in .text("a\0b") }
    let refused = try await Command.run("get", server.url("/null"), output: .terminal)
    #expect(refused.status == 23)
    #expect(refused.text == "")
    #expect(refused.errors.contains("the body is binary"))
    #expect(try await Command.run("get", server.url("/null"), "-o", "-", output: .terminal).text == "a\0b")
    #expect(try await get("/null").text == "a\0b")
  }

  // MARK: - Progress

  @Test func progressOfAnUpload() async throws {
    try directory.write([UInt8](repeating: 7, count: 100_000), to: "data")
    let arguments = ["get", server.url("/anything"), "-d", "@" + directory.path("data")]
    let result = try await Command(arguments, errors: .terminal).end()
    #expect(result.errors.contains("100% [========================]  97.7 KiB of 97.7 KiB"), "\(result.errors)")
    #expect(try await Command(arguments + ["-s"], errors: .terminal).end().errors == "")
    #expect(try await Command.run("get", server.url("/anything"), "-d", "x", errors: .terminal).errors == "")
  }

  @Test func progressOfAKnownLength() async throws {
    let result = try await Command.run(
      "get", server.url("/bytes/100000"), "-o", directory.path("new"), errors: .terminal)
    #expect(result.status == 0)
    #expect(result.errors.hasPrefix("\r"))
    #expect(result.errors.contains("100% [========================]  97.7 KiB of 97.7 KiB"))
    #expect(result.errors.utf8.last == UInt8(ascii: "\n"))
  }

  @Test func progressOfAnUnknownLength() async throws {
    let result = try await Command.run(
      "get", server.url("/chunked/100000"), "-o", directory.path("new"), errors: .terminal)
    #expect(result.status == 0)
    #expect(result.errors.contains("\r97.7 KiB  "))
    #expect(!result.errors.contains("%"))
  }

  @Test func noProgressBesideABodyOrAVerboseLog() async throws {
    #expect(try await Command.run("get", server.url("/bytes/9"), errors: .terminal).errors == "")
    let result = try await Command.run(
      "get", "-v", server.url("/bytes/9"), "-o", directory.path("new"), errors: .terminal)
    #expect(!result.errors.contains("%"))
  }
}
