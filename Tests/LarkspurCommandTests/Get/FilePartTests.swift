import LarkspurIO
import LarkspurTestServer
import TestKit
import Testing

/// Tests that `--resume` never joins two versions of a file: the file has the version of its bytes.
@Suite struct FilePartTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private static let one = "\"1\""
  private static let two = "\"2\""

  private func resume(_ arguments: String...) async throws -> Command.Result {
    try await Command(
      ["get", server.url("/file"), "--resume", "-o", "file", "--retry", "0"] + arguments, directory: directory.path
    ).end()
  }

  /// A response with the whole, of which the first bytes arrive.
  private func whole(_ text: String, tag: String?, sending count: Int? = nil) -> TestServer.Script {
    [
      .expectRequest,
      .send(
        "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\(tag.map { "ETag: \($0)\r\n" } ?? "")\r\n"
          + text.prefix(count ?? .max)), .close,
    ]
  }

  private func rest(_ text: String, from first: Int, tag: String) -> TestServer.Script {
    [
      .expectRequest,
      .send(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: \(text.utf8.count - first)\r\nETag: \(tag)\r\n"
          + "Content-Range: bytes \(first)-\(text.utf8.count - 1)/\(text.utf8.count)\r\n\r\n\(text.dropFirst(first))"),
      .close,
    ]
  }

  private var conditions: [String?] { server.requests.flatMap { [$0.fields["Range"], $0.fields["If-Range"]] } }

  @Test func theVersionIsContinued() async throws {
    server.enqueue(whole("one one one", tag: Self.one, sending: 4), rest("one one one", from: 4, tag: Self.one))
    #expect(try await resume().status == 18)
    #expect(try directory.text(of: "file") == "one ")
    #expect(try await resume().status == 0)
    #expect(try directory.text(of: "file") == "one one one")
    #expect(conditions == [nil, nil, "bytes=4-", Self.one])
    #expect(directory.names == ["file"])
  }

  @Test func anotherVersionReplacesThePart() async throws {
    server.enqueue(whole("one one one", tag: Self.one, sending: 4), whole("two two", tag: Self.two))
    #expect(try await resume().status == 18)
    #expect(try await resume().status == 0)
    #expect(try directory.text(of: "file") == "two two")
  }

  /// A server that ignores the condition sends the rest of another version.
  @Test func theRestOfAnotherVersionIsRefused() async throws {
    server.enqueue(
      whole("one one one", tag: Self.one, sending: 4), rest("two two two", from: 4, tag: Self.two),
      rest("two two two", from: 4, tag: Self.two), whole("two two two", tag: Self.two))
    #expect(try await resume().status == 18)
    #expect(try await resume().status == 36)
    #expect(try directory.text(of: "file") == "one ")
    #expect(try await resume("--retry", "1").status == 0)
    #expect(try directory.text(of: "file") == "two two two")
    #expect(conditions.suffix(2) == [nil, nil])
  }

  /// A file that is complete keeps its version.
  @Test func aLongerVersionIsNotAppended() async throws {
    server.enqueue(whole("one", tag: Self.one), whole("two two", tag: Self.two))
    #expect(try await resume().status == 0)
    #expect(try await resume().status == 0)
    #expect(try directory.text(of: "file") == "two two")
    #expect(conditions == [nil, nil, "bytes=3-", Self.one])
  }

  @Test(arguments: [
    "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nETag: \"1\"\r\n\r\nNOT",
  ])
  func aCompleteFileStays(response: String) async throws {
    server.enqueue(whole("one", tag: Self.one), [.expectRequest, .send(response), .close])
    #expect(try await resume().status == 0)
    #expect(try await resume().status == 0)
    #expect(try directory.text(of: "file") == "one")
  }

  /// Without a validator the bytes are of no use to the next command.
  @Test func anUnknownVersionBeginsAnew() async throws {
    server.enqueue(whole("one one", tag: nil, sending: 4), whole("two", tag: "W/\"2\""))
    #expect(try await resume().status == 18)
    #expect(try await resume().status == 0)
    #expect(try directory.text(of: "file") == "two")
    #expect(conditions == [nil, nil, nil, nil])
  }

  /// An error keeps the part.
  @Test(arguments: [(404, 22), (302, 33)]) func anErrorKeepsThePart(status: Int, exit: Int32) async throws {
    for tag in [Self.one, nil] {
      server.enqueue(
        whole("one one", tag: tag, sending: 4),
        [.expectRequest, .send("HTTP/1.1 \(status) No\r\nContent-Length: 2\r\n\r\nno"), .close])
      try? FilePaths.remove(directory.path("file"))
      #expect(try await resume().status == 18)
      #expect(try await resume().status == exit)
      #expect(try directory.text(of: "file") == "one ")
    }
  }

  /// The bytes of another program have no version at first, and that of the rest from then on.
  @Test func theFileOfAnotherProgram() async throws {
    try directory.write("one ", to: "file")
    server.enqueue(rest("one one", from: 4, tag: Self.one), whole("two", tag: Self.two))
    #expect(try await resume().status == 0)
    #expect(try directory.text(of: "file") == "one one")
    #expect(try await resume().status == 0)
    #expect(try directory.text(of: "file") == "two")
    #expect(conditions == ["bytes=4-", nil, "bytes=7-", Self.one])
  }
}
