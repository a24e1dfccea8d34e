import LarkspurTestServer
import TestKit
import Testing

@testable import LarkspurCommand

/// Content that the command reads while it sends it.
@Suite struct FormBodyTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func plan(_ data: [GetOptions.Data], streams: Bool = true) throws -> GetRequest {
    var options = GetOptions(url: "http://a.example/")
    options.data = data
    return try GetRequest(options, to: RequestURL.parse(options.url), streams: streams)
  }

  /// The command does not hold a large file in memory.
  @Test func aLargeFileIsNotReadBefore() throws {
    try directory.write(String(repeating: "x", count: FormBody.heldBytesMax), to: "data")
    let file = GetOptions.Data.file(directory.path("data"))
    let held = try plan([file])
    #expect(held.stream == nil && held.body.count == FormBody.heldBytesMax)
    let data: [GetOptions.Data] = [.text("a=b"), file, file]
    let streamed = try plan(data)
    #expect(streamed.body.isEmpty && streamed.stream?.byteCount == 2 * FormBody.heldBytesMax + 5)
    // Commands that need the bytes get them.
    #expect(try plan(data, streams: false).body.count == 2 * FormBody.heldBytesMax + 5)
  }

  /// A redirection reads the files again.
  @Test func aLargeFileIsSentTwice() async throws {
    let server = try TestServer()
    let text = String(repeating: "line\r\n\0", count: 300_000)
    try directory.write(text, to: "data")
    let file = "@" + directory.path("data")
    let result = try await Command.run(
      "get", server.url("/redirect-to?url=/anything&status=307"), "-L", "-d", "a=b", "-d", file, "-d", file)
    #expect(result.status == 0, "\(result.errors)")
    let content = TestServer.Checksum(Array("a=b&\(text)&\(text)".utf8))
    #expect(server.requests.map(\.bodyChecksum) == [content, content])
    let fields = server.requests.map { [$0.fields["Content-Type"], $0.fields["Content-Length"]] }
    #expect(fields == Array(repeating: ["application/x-www-form-urlencoded", "4200005"], count: 2))
  }
}
