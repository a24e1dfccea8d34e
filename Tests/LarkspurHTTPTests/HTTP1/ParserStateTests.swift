import LarkspurBytes
import LarkspurHTTP
import Testing

/// Every state of the parser crossed with every fact: begin, no new bytes, the peer's close.
@Suite struct ParserStateTests {
  struct State: CustomTestStringConvertible {
    var testDescription: String
    /// The input that leads to the state.
    var bytes: String
    var request: RequestContext? = .get
    var isIdle = false
    var isTunnel = false
    /// The meaning of the peer's close in this state.
    var close: Result<Bool, ResponseError>
  }

  static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

  static let states: [State] = [
    State(testDescription: "idle, new", bytes: "", request: nil, isIdle: true, close: .success(false)),
    State(testDescription: "idle again", bytes: "HTTP/1.1 204\r\n\r\n", isIdle: true, close: .success(false)),
    State(testDescription: "idle after chunks", bytes: chunked + "0\r\n\r\n", isIdle: true, close: .success(false)),
    State(testDescription: "status line, nothing", bytes: "", close: .failure(.truncated(.beforeHead))),
    State(testDescription: "status line", bytes: "HTTP/1.1 2", close: .failure(.truncated(.statusLine))),
    State(testDescription: "reason", bytes: "HTTP/1.1 200 O", close: .failure(.truncated(.statusLine))),
    State(
      testDescription: "end of status line", bytes: "HTTP/1.1 200 OK\r", close: .failure(.truncated(.statusLine))),
    State(testDescription: "fields", bytes: "HTTP/1.1 200 OK\r\nA: b", close: .failure(.truncated(.head))),
    State(
      testDescription: "after interim", bytes: "HTTP/1.1 100\r\n\r\n", close: .failure(.truncated(.statusLine))),
    State(
      testDescription: "length", bytes: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody",
      close: .failure(.truncated(.body(missing: 5)))),
    State(testDescription: "chunk size", bytes: chunked, close: .failure(.truncated(.chunkedBody))),
    State(testDescription: "chunk extension", bytes: chunked + "1;x", close: .failure(.truncated(.chunkedBody))),
    State(testDescription: "end of chunk size", bytes: chunked + "1\r", close: .failure(.truncated(.chunkedBody))),
    State(testDescription: "chunk data", bytes: chunked + "2\r\na", close: .failure(.truncated(.chunkedBody))),
    State(testDescription: "end of chunk data", bytes: chunked + "1\r\na", close: .failure(.truncated(.chunkedBody))),
    State(
      testDescription: "LF after chunk data", bytes: chunked + "1\r\na\r", close: .failure(.truncated(.chunkedBody))),
    State(testDescription: "trailers", bytes: chunked + "0\r\nA", close: .failure(.truncated(.trailers))),
    State(testDescription: "until close", bytes: "HTTP/1.1 200 OK\r\n\r\nbody", close: .success(true)),
    State(
      testDescription: "tunnel", bytes: "HTTP/1.1 101 X\r\n\r\n", request: .upgrade, isTunnel: true,
      close: .success(false)),
    State(testDescription: "failed", bytes: "HTTP/2", close: .failure(.versionUnsupported)),
    State(testDescription: "failed while idle", bytes: "H", request: nil, close: .failure(.unsolicitedBytes)),
  ]

  /// A parser in a state, and the bytes that the parser has not consumed.
  private struct Situation: ~Copyable {
    var parser = ResponseParser()
    var unread: [UInt8] = []

    init(_ state: State) {
      if let request = state.request { _ = parser.start(request) }
      let bytes = Array(state.bytes.utf8)
      var consumed = 0
      do {
        while try parser.next(in: bytes.span, consumed: &consumed) != .needMore {}
      } catch {}
      unread = Array(bytes[consumed...])
    }
  }

  @Test(arguments: states) func flags(state: State) {
    let situation = Situation(state)
    let (isIdle, isTunnel) = (situation.parser.isIdle, situation.parser.isTunnel)
    #expect((isIdle, isTunnel) == (state.isIdle, state.isTunnel))
    // All complete parts have been read: no event is left.
    var parser = situation.parser
    let isComplete = parser.isComplete()
    #expect(!isComplete)
  }

  @Test(arguments: states) func beginIsForTheIdle(state: State) {
    var situation = Situation(state)
    let begins = situation.parser.start(.get)
    #expect(begins == state.isIdle)
  }

  @Test(arguments: states) func nothingNewIsNoNews(state: State) {
    var situation = Situation(state)
    let unread = situation.unread
    for _ in 0..<2 {
      var consumed = 0
      let result: Result<ResponseParser.Event, ResponseError>
      do { result = .success(try situation.parser.next(in: unread.span, consumed: &consumed)) } catch {
        result = .failure(error)
      }
      if case .failure(let error) = state.close, state.testDescription.hasPrefix("failed") {
        #expect(result == .failure(error))
      } else {
        #expect(result == .success(.needMore))
      }
      #expect(consumed == 0)
    }
  }

  @Test(arguments: states) func theClose(state: State) {
    var situation = Situation(state)
    let unread = situation.unread
    let result: Result<Bool, ResponseError>
    do { result = .success(try situation.parser.peerClosed(unread: unread.count)) } catch { result = .failure(error) }
    #expect(result == state.close)

    // A second call has an equal result, except that a response completed by the close leaves an idle parser.
    let again: Result<Bool, ResponseError>
    do { again = .success(try situation.parser.peerClosed(unread: unread.count)) } catch { again = .failure(error) }
    #expect(again == (state.close == .success(true) ? .success(false) : state.close))
    let (isIdle, begins) = (situation.parser.isIdle, situation.parser.start(.get))
    let isFree = state.isIdle || state.close == .success(true)
    #expect((isIdle, begins) == (isFree, isFree))
  }

  /// The end of a body and the end of the response are two events, and the close may come between them.
  @Test func theCloseBetweenTheBodyAndItsEnd() throws {
    let bytes = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".utf8)
    var parser = ResponseParser()
    _ = parser.start(.get)
    var consumed = 0
    var events = [try parser.next(in: bytes.span, consumed: &consumed)]
    let isCompleteBefore = parser.isComplete()
    events.append(try parser.next(in: bytes.span, consumed: &consumed))
    let isComplete = parser.isComplete()
    let isEnded = try parser.peerClosed(unread: 0)
    #expect(events == [.head, .body(38..<40)])
    #expect((isCompleteBefore, isComplete, isEnded) == (false, true, true))
  }

  @Test func positionsCountFromTheBytesGiven() throws {
    // Ranges refer to the bytes as given, also if those begin with other bytes.
    let bytes = Array("xxxHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n".utf8)
    var parser = ResponseParser()
    _ = parser.start(.get)
    var consumed = 3
    var events: [ResponseParser.Event] = []
    var headStart = 0
    for _ in 0..<3 {
      events.append(try parser.next(in: bytes.span, consumed: &consumed))
      if events.count == 1 { headStart = consumed - parser.head.byteCount }
    }
    #expect(events == [.head, .body(53..<55), .end(trailerBase: 60)])
    #expect(headStart == 3)
    #expect(consumed == bytes.count)
    let trailerCount = parser.trailers.count
    try #require(trailerCount == 1)
    let trailer = parser.trailers[0]
    #expect(trailer.name == 0..<1)
    #expect(trailer.value == 3..<4)
  }
}
