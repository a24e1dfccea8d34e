import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite(.timeLimit(.minutes(2))) struct ServerSentEventSequenceTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)

  init() throws { server = try TestServer() }

  private static let stream = """
    : hello
    event: greeting
    id: 1
    data: one
    data: two

    retry: 250
    data: three

    data: dropped
    """

  private static let events = [
    ServerSentEvent(id: "1", event: "greeting", data: "one\ntwo"),
    ServerSentEvent(id: "1", data: "three", retry: .milliseconds(250)),
  ]

  private func bytes(of body: String, chunkBytesMax: Int) async throws -> URLSession.AsyncBytes {
    server.route("GET", "/events") { _ in
      TestServer.Response(
        fields: ["Content-Type": "text/event-stream"], body: .text(body),
        framing: .chunked(chunkBytesMax: chunkBytesMax))
    }
    let (bytes, response) = try await session.bytes(from: #require(URL(string: server.url("/events"))))
    #expect(response.mimeType == "text/event-stream")
    return bytes
  }

  private static func collect<Some: AsyncSequence>(_ sequence: Some) async throws -> [Some.Element] {
    var list: [Some.Element] = []
    for try await element in sequence { list.append(element) }
    return list
  }

  /// Also reads bytes that are not `AsyncBytes`, which takes another way.
  @Test(arguments: [1, 2, 7, 4096], ["\n", "\r", "\r\n"]) func events(chunkBytesMax: Int, lineEnd: String) async throws
  {
    let stream = Self.stream.replacing("\n", with: lineEnd)
    let bytes = try await bytes(of: stream, chunkBytesMax: chunkBytesMax)
    #expect(try await Self.collect(bytes.serverSentEvents) == Self.events)
    let others = try await self.bytes(of: stream, chunkBytesMax: chunkBytesMax).map { $0 }
    #expect(try await Self.collect(others.serverSentEvents) == Self.events)
    session.invalidateAndCancel()
  }

  @Test func manyEventsInOnePiece() async throws {
    let body = (0..<5000).map { "id: \($0)\ndata: event \($0)\n\n" }.joined()
    let expected = (0..<5000).map { ServerSentEvent(id: "\($0)", data: "event \($0)") }
    #expect(try await Self.collect(bytes(of: body, chunkBytesMax: 1 << 20).serverSentEvents) == expected)
    let others = try await bytes(of: body, chunkBytesMax: 1 << 20).map { $0 }
    #expect(try await Self.collect(others.serverSentEvents) == expected)
    session.invalidateAndCancel()
  }

  /// A line that is longer than what is collected at a time.
  @Test(arguments: [4095, 4096, 4097, 100_000]) func aLongLine(count: Int) async throws {
    let data = String(repeating: "ä", count: count)
    let bytes = try await bytes(of: "data: \(data)\n\n", chunkBytesMax: 1000)
    #expect(try await Self.collect(bytes.serverSentEvents).map(\.data) == [data])
    let others = try await self.bytes(of: "data: \(data)\n\n", chunkBytesMax: 1000).map { $0 }
    #expect(try await Self.collect(others.serverSentEvents).map(\.data) == [data])
    session.invalidateAndCancel()
  }

  /// An event is returned when its last byte has come, and does not wait for another byte.
  @Test(arguments: ["\n\n", "\r\r", "\r\n\r"]) func anEventIsNotHeldBack(end: String) async throws {
    let (bytes, input) = AsyncStream.makeStream(of: UInt8.self)
    for byte in "data: x\(end)".utf8 { input.yield(byte) }
    var iterator = bytes.serverSentEvents.makeAsyncIterator()
    #expect(try await iterator.next()?.data == "x")
    input.finish()
    #expect(try await iterator.next() == nil)
    #expect(try await iterator.next() == nil)
  }

  /// The server sends each event only when the one before has been read.
  @Test func eventsComeOneByOne() async throws {
    let signals = [TestServer.Signal(), TestServer.Signal()]
    server.route("GET", "/events") { _ in
      TestServer.Response(
        fields: ["Content-Type": "text/event-stream"],
        body: .stream { writer in
          try writer.write("data: 1\n\n")
          try writer.wait(signals[0])
          try writer.write("data: 2\r\r")
          try writer.wait(signals[1])
          try writer.write("\ndata: 3\n\n")
        }, framing: .chunked())
    }
    let (bytes, _) = try await session.bytes(from: #require(URL(string: server.url("/events"))))
    var iterator = bytes.serverSentEvents.makeAsyncIterator()
    #expect(try await iterator.next()?.data == "1")
    signals[0].fire()
    #expect(try await iterator.next()?.data == "2")
    signals[1].fire()
    #expect(try await iterator.next()?.data == "3")
    #expect(try await iterator.next() == nil)
    session.invalidateAndCancel()
  }

  @Test func whatOneIteratorLeavesIsForTheNext() async throws {
    let bytes = try await bytes(of: "data: 1\n\ndata: 2\n\nthe rest", chunkBytesMax: 1 << 20)
    #expect(try await bytes.serverSentEvents.first { _ in true }?.data == "1")
    #expect(try await bytes.serverSentEvents.first { _ in true }?.data == "2")
    #expect(try await Self.collect(bytes.lines) == ["the rest"])
    session.invalidateAndCancel()
  }

  @Test func aBodyThatIsCutShort() async throws {
    server.defaultScript = [
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: 1\n\ndata: 2\n"), .close,
    ]
    let url = try #require(URL(string: server.url("/cut")))
    var iterator = try await session.bytes(from: url).0.serverSentEvents.makeAsyncIterator()
    #expect(try await iterator.next()?.data == "1")
    #expect(await EventSourceScript.errorOfNext(&iterator)?.code == .networkConnectionLost)
    #expect(try await iterator.next() == nil)
    var others = try await session.bytes(from: url).0.map { $0 }.serverSentEvents.makeAsyncIterator()
    #expect(try await others.next()?.data == "1")
    #expect(await EventSourceScript.errorOfNext(&others)?.code == .networkConnectionLost)
    #expect(try await others.next() == nil)
    session.invalidateAndCancel()
  }

  @Test(arguments: [(20, 11, 3), (19, 11, 1), (20, 10, 2)]) func limits(line: Int, event: Int, count: Int) async throws
  {
    // The second event has the longest line, the third one is the largest.
    let body = "data: 1\n\n: \(String(repeating: "c", count: 18))\ndata: 2\n\ndata: abcde\ndata: fghij\n\n"
    for isPlain in [true, false] {
      let bytes = try await bytes(of: body, chunkBytesMax: 1 << 20)
      var data: [String] = []
      var code: URLError.Code?
      do {
        if isPlain {
          for try await event in bytes.serverSentEvents(lineBytesMax: line, eventBytesMax: event) {
            data.append(event.data)
          }
        } else {
          for try await event in bytes.map({ $0 }).serverSentEvents(lineBytesMax: line, eventBytesMax: event) {
            data.append(event.data)
          }
        }
      } catch {
        code = (error as? URLError)?.code
      }
      #expect(data == ["1", "2", "abcde\nfghij"].prefix(count).map { $0 })
      #expect(code == (count == 3 ? nil : .dataLengthExceedsMaximum))
    }
    session.invalidateAndCancel()
  }

  @Test func idsOfEvents() async throws {
    let bytes = try await bytes(of: "data: 1\n\nid: é\ndata: 2\n\nid\ndata: 3\n\n", chunkBytesMax: 1 << 20)
    #expect(try await Self.collect(bytes.serverSentEvents).map(\.id) == [nil, "é", nil])
    session.invalidateAndCancel()
  }
}
