import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

@Suite struct AsyncLinesTests {
  private func lines(of body: [UInt8]) async throws -> [String] {
    let server = try TestServer()
    // Sends chunks of one byte: the lines must not depend on how the bytes arrive.
    server.route("GET", "/lines") { _ in
      TestServer.Response(body: .bytes(body), framing: .chunked(chunkBytesMax: 1))
    }
    let url = try #require(URL(string: server.url("/lines")))
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let (bytes, _) = try await session.bytes(from: url)
    var lines: [String] = []
    for try await line in bytes.lines { lines.append(line) }
    return lines
  }

  @Test(arguments: [
    ("", []), ("one", ["one"]), ("one\n", ["one"]), ("one\ntwo", ["one", "two"]), ("one\r\ntwo\r\n", ["one", "two"]),
    ("one\rtwo\r", ["one", "two"]), ("\n\none\n\n\ntwo\n\n", ["one", "two"]), ("a\u{0B}b\u{0C}c", ["a", "b", "c"]),
    ("ä\u{85}ö\u{2028}ü\u{2029}€", ["ä", "ö", "ü", "€"]), ("\u{2027}\u{A8}\u{A9}", ["\u{2027}\u{A8}\u{A9}"]),
    ("data: {\"a\": 1}\n\ndata: x\n\n", ["data: {\"a\": 1}", "data: x"]),
  ])
  func lines(text: String, expected: [String]) async throws {
    #expect(try await lines(of: Array(text.utf8)) == expected)
  }

  @Test func brokenText() async throws {
    #expect(try await lines(of: [0xC2, 0x0A, 0x85, 0x0A, 0x61]) == ["\u{FFFD}", "\u{FFFD}", "a"])
  }

  @Test func aBodyThatIsCutShort() async throws {
    let server = try TestServer()
    server.route(
      "GET", "/cut",
      script: [.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\none\ntwo"), .close])
    let url = try #require(URL(string: server.url("/cut")))
    var lines: [String] = []
    await #expect(throws: URLError.self) {
      for try await line in try await URLSession(configuration: .ephemeral).bytes(from: url).0.lines {
        lines.append(line)
      }
    }
    #expect(lines == ["one"])
  }

  @Test func ofAURL() async throws {
    let server = try TestServer()
    server.route("GET", "/poem") { _ in .text("one\ntwo\n", status: 404) }
    let url = try #require(URL(string: server.url("/poem")))
    for round in 0..<2 {
      // Nothing is loaded before the first element is requested.
      let sequence = url.lines
      #expect(server.requestsReceived == round)
      var lines: [String] = []
      for try await line in sequence { lines.append(line) }
      #expect(lines == ["one", "two"])
    }
    #expect(server.requestsReceived == 2)
    var bytes: [UInt8] = []
    for try await byte in url.resourceBytes { bytes.append(byte) }
    #expect(bytes == Array("one\ntwo\n".utf8))
    let directory = try TemporaryDirectory()
    let file = directory.url.appending(path: "poem")
    try Data("three\nfour".utf8).write(to: file)
    #expect(try await file.lines.reduce(into: []) { $0.append($1) } == ["three", "four"])
    let absent = directory.url.appending(path: "absent")
    #expect(try await rest(behind: absent.resourceBytes) == [])
  }

  /// The elements that an iterator returns after it has thrown an error.
  private func rest<Some: AsyncSequence>(behind sequence: Some) async throws -> [Some.Element] {
    var iterator = sequence.makeAsyncIterator()
    var hasThrown = false
    do {
      while try await iterator.next(isolation: #isolation) != nil {}
    } catch {
      hasThrown = true
    }
    #expect(hasThrown)
    var rest: [Some.Element] = []
    while let element = try await iterator.next(isolation: #isolation) { rest.append(element) }
    return rest
  }

  /// An iterator that has thrown returns `nil` from then on, as `AsyncIteratorProtocol` requires, so a loop that
  /// catches the error and continues ends.
  @Test func behindAnError() async throws {
    let server = try TestServer()
    server.defaultScript = [
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\none\ntw\u{C3}"), .close,
    ]
    let url = try #require(URL(string: server.url("/cut")))
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    #expect(try await rest(behind: session.bytes(from: url).0) == [])
    #expect(try await rest(behind: session.bytes(from: url).0.lines) == [])
    #expect(try await rest(behind: session.bytes(from: url).0.characters) == [])
    #expect(try await rest(behind: session.bytes(from: url).0.unicodeScalars) == [])
  }
}
