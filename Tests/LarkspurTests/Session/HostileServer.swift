import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// A malicious or broken server, and the only correct result of a request to it.
struct HostileServer: Sendable, CustomTestStringConvertible {
  enum Outcome: Hashable, Sendable {
    case response(status: Int, body: String)
    case failure(URLError.Code)
  }

  enum Way: Sendable {
    case data
    case download
    /// Uploads this number of bytes.
    case upload(Int)
    case head
  }

  /// The timeout in seconds for servers that never answer. Long enough to connect on a busy machine, since the next
  /// request must meet the next script.
  static let patience = 2.0

  let name: String
  var way = Way.data
  /// Whether the URL has a user and a password.
  var hasUser = false
  var timeout = 60.0
  let end: Outcome
  /// The scripts of the first connections, in order. Later connections behave well.
  let scripts: [TestServer.Script]
  /// The response on all other connections, or `nil` for a good response.
  var always: String?

  var testDescription: String { name }

  init(
    _ name: String, _ way: Way = .data, timeout: Double = 60, user: Bool = false, ends end: Outcome,
    _ scripts: [TestServer.Step]...
  ) {
    self.name = name
    self.way = way
    self.timeout = timeout
    hasUser = user
    self.end = end
    self.scripts = scripts.map { TestServer.Script($0) }
  }

  /// A script that sends `text` after it has received a request.
  static func answering(_ text: String, then steps: TestServer.Step...) -> [TestServer.Step] {
    [.expectRequest, .send(latin1: text)] + steps
  }

  static let ok = "HTTP/1.1 200 OK\r\n"
  static let good = ok + "Content-Length: 4\r\n\r\ngood"
  static let isGood = Outcome.response(status: 200, body: "good")
}

extension HostileServer {
  // MARK: - Silence

  static let silences: [HostileServer] = [
    HostileServer("accepts and says nothing", timeout: patience, ends: .failure(.timedOut), [.hang]),
    HostileServer("reads and says nothing", timeout: patience, ends: .failure(.timedOut), [.expectRequest, .hang]),
    HostileServer(
      "half a status line", timeout: patience, ends: .failure(.timedOut), answering("HTTP/1.", then: .hang)),
    HostileServer(
      "half a head", timeout: patience, ends: .failure(.timedOut), answering(ok + "Content-Le", then: .hang)),
    HostileServer(
      "a head that drips for ever", timeout: patience, ends: .failure(.timedOut),
      answering(ok + "X: ", then: .repeat([.send("x"), .pause(.milliseconds(20))]))),
    HostileServer(
      "interim responses that drip for ever", ends: .failure(.dataLengthExceedsMaximum),
      [.expectRequest, .repeat([.send("HTTP/1.1 102 Processing\r\n\r\n"), .pause(.milliseconds(5))])]),
    HostileServer(
      "half a body", timeout: patience, ends: .failure(.timedOut),
      answering(ok + "Content-Length: 8\r\n\r\ngood", then: .hang)),
    HostileServer(
      "half a body of a download", .download, timeout: patience, ends: .failure(.timedOut),
      answering(ok + "Content-Length: 8\r\n\r\ngood", then: .hang)),
    HostileServer(
      "half a chunk's size", timeout: patience, ends: .failure(.timedOut),
      answering(ok + "Transfer-Encoding: chunked\r\n\r\n4", then: .hang)),
    HostileServer(
      "no last chunk", timeout: patience, ends: .failure(.timedOut),
      answering(ok + "Transfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n", then: .hang)),
    HostileServer(
      "no end of the trailers", timeout: patience, ends: .failure(.timedOut),
      answering(ok + "Transfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\nA: b\r\n", then: .hang)),
    HostileServer(
      "an upload that nobody reads", .upload(16 << 20), timeout: patience, ends: .failure(.timedOut), [.hang]),
    HostileServer(
      "an upload that is read, and not answered", .upload(1000), timeout: patience, ends: .failure(.timedOut),
      [.expectRequest, .hang]),
    HostileServer(
      "nothing but 100", .upload(1000), timeout: patience, ends: .failure(.timedOut),
      [.expectHead, .send("HTTP/1.1 100 Continue\r\n\r\n"), .hang]),
    HostileServer(
      "a body that drips to its end", ends: isGood,
      answering(ok + "Content-Length: 4\r\n\r\n", then: .send("good", inPiecesOf: 1, every: .milliseconds(30)))),
  ]

  // MARK: - Ends

  static let ends: [HostileServer] = [
    HostileServer("closes at once", ends: .failure(.networkConnectionLost), [.close]),
    HostileServer(
      "resets at the first byte", ends: .failure(.networkConnectionLost), [.expectBytes(count: 1), .reset]),
    HostileServer("ends its side at once", ends: .failure(.networkConnectionLost), [.halfClose]),
    HostileServer("closes when asked", ends: .failure(.networkConnectionLost), [.expectRequest, .close]),
    HostileServer("resets when asked", ends: .failure(.networkConnectionLost), [.expectRequest, .reset]),
    HostileServer("closes in the head", ends: .failure(.networkConnectionLost), answering(ok, then: .close)),
    HostileServer(
      "closes after interim responses", ends: .failure(.networkConnectionLost),
      answering("HTTP/1.1 103 Early Hints\r\n\r\n", then: .close)),
    HostileServer(
      "closes in the body", ends: .failure(.networkConnectionLost),
      answering(ok + "Content-Length: 5\r\n\r\ngood", then: .close)),
    HostileServer(
      "closes in the body of a download", .download, ends: .failure(.networkConnectionLost),
      answering(ok + "Content-Length: 5\r\n\r\ngood", then: .close)),
    // CVE-2025-13836: the memory reserved for a body is bounded, whatever length the server announces.
    HostileServer(
      "a length beyond all bodies", ends: .failure(.networkConnectionLost),
      answering(ok + "Content-Length: 9223372036854775807\r\n\r\ngood", then: .close)),
    HostileServer(
      "a length beyond all files", .download, ends: .failure(.networkConnectionLost),
      answering(ok + "Content-Length: 9223372036854775807\r\n\r\ngood", then: .close)),
    HostileServer(
      "a chunk beyond all bodies", ends: .failure(.networkConnectionLost),
      answering(ok + "Transfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFFF\r\ngood", then: .close)),
    HostileServer(
      "a chunk beyond all files", .download, ends: .failure(.networkConnectionLost),
      answering(ok + "Transfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFFF\r\ngood", then: .close)),
    HostileServer(
      "resets a body without a length", ends: .failure(.networkConnectionLost),
      answering(ok + "\r\ngood", then: .pause(.milliseconds(50)), .reset)),
    HostileServer("ends a body without a length", ends: isGood, answering(ok + "\r\ngood", then: .close)),
    HostileServer(
      "closes in the middle of an upload", .upload(16 << 20), ends: .failure(.networkConnectionLost),
      [.expectHead, .expectBytes(count: 1000), .close]),
    HostileServer(
      "answers in the middle of an upload, and resets", .upload(16 << 20), ends: .response(status: 413, body: "much"),
      [
        .expectHead, .send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch"), .pause(.milliseconds(50)),
        .reset,
      ]),
    HostileServer(
      "answers in the middle of an upload, and reads no more", .upload(16 << 20),
      ends: .response(status: 413, body: "much"),
      [.expectHead, .send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch"), .hang]),
    HostileServer(
      "consents in the middle of an upload, and reads no more", .upload(16 << 20), timeout: patience,
      ends: .failure(.timedOut),
      [.expectHead, .send(good), .hang]),
  ]

  // MARK: - Heads

  private static func malformed(_ name: String, _ text: String) -> HostileServer {
    HostileServer(name, ends: .failure(.cannotParseResponse), answering(text, then: .hang))
  }

  static let heads: [HostileServer] = [
    malformed("HTTP/0.9", "<html>good</html>"),
    malformed("HTTP/2", "\0\0\u{12}\u{4}\0\0\0\0\0\0\u{3}\0\0\0\u{64}"),
    malformed("HTTP/3.0", "HTTP/3.0 200 OK\r\n\r\n"),
    malformed("TLS", "\u{15}\u{3}\u{1}\0\u{2}\u{2}\u{28}"),
    malformed("SSH", "SSH-2.0-OpenSSH_9.2\r\n"),
    malformed("radio", "ICY 200 OK\r\n\r\n"),
    malformed("a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"),
    malformed("a negative status", "HTTP/1.1 -200 OK\r\n\r\n"),
    malformed("an empty line first", "\r\n" + good),
    HostileServer(
      "line feeds alone", ends: isGood,
      answering("HTTP/1.1 200 OK\nContent-Length: 4\n\ngood", then: .serveRoutes)),
    malformed("a line feed alone among others", "HTTP/1.1 200 OK\nContent-Length: 4\r\n\r\ngood"),
    malformed("a line feed alone behind others", "HTTP/1.1 200 OK\r\nContent-Length: 4\n\ngood"),
    malformed("NUL in a value", ok + "X: a\0b\r\n\r\n"),
    malformed("a space before the colon", ok + "Content-Length : 4\r\n\r\ngood"),
    malformed("a field without a name", ok + ": 4\r\n\r\n"),
    malformed("two lengths", ok + "Content-Length: 4\r\nContent-Length: 5\r\n\r\ngood"),
    malformed("a negative length", ok + "Content-Length: -1\r\n\r\ngood"),
    malformed("a length of twenty digits", ok + "Content-Length: 99999999999999999999\r\n\r\ngood"),
    malformed("a chunk of seventeen digits", ok + "Transfer-Encoding: chunked\r\n\r\n00000000000000004\r\ngood\r\n"),
    malformed("a negative chunk", ok + "Transfer-Encoding: chunked\r\n\r\n-4\r\ngood\r\n"),
    malformed("a chunk longer than its size", ok + "Transfer-Encoding: chunked\r\n\r\n3\r\ngood\r\n"),
    malformed("a protocol that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
    HostileServer(
      "a transfer coding that nobody asked for", ends: .failure(.cannotDecodeContentData),
      answering(ok + "Transfer-Encoding: gzip, chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n", then: .hang)),
    HostileServer(
      "a line that is folded", ends: isGood,
      answering(ok + "X: a\r\n b\r\nContent-Length: 4\r\n\r\ngood", then: .serveRoutes)),
    HostileServer(
      "a length beside chunks", ends: isGood,
      answering(ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n", then: .hang)),
  ]

  // MARK: - Floods

  private static func flood(_ name: String, _ start: String, _ rest: String) -> HostileServer {
    HostileServer(
      name, ends: .failure(.dataLengthExceedsMaximum), answering(start, then: .repeat([.send(rest)])))
  }

  static let floods: [HostileServer] = [
    flood("a status line without an end", "HTTP/1.1 200 ", String(repeating: "O", count: 4096)),
    flood("a line without an end", ok + "X: ", String(repeating: "x", count: 4096)),
    flood("a name without an end", ok, String(repeating: "x", count: 4096)),
    flood("a fold without an end", ok + "X: ", "a\r\n b"),
    flood("long lines", ok, "X: " + String(repeating: "x", count: 4096) + "\r\n"),
    flood("many lines", ok, "X: y\r\n"),
    flood("cookies", ok, "Set-Cookie: " + String(repeating: "c", count: 10) + "=1\r\n"),
    flood("a cookie without an end", ok + "Set-Cookie: a=", String(repeating: "x", count: 4096)),
    flood("a place without an end", "HTTP/1.1 302 Found\r\nLocation: /", String(repeating: "x", count: 4096)),
    flood("interim responses", "", "HTTP/1.1 100 Continue\r\n\r\n"),
    flood("trailers", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"),
    flood(
      "a trailer without an end", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", String(repeating: "x", count: 4096)
    ),
    HostileServer(
      "extensions without an end", ends: .failure(.dataLengthExceedsMaximum),
      answering(
        ok + "Transfer-Encoding: chunked\r\n\r\n1;", then: .repeat([.send(String(repeating: "x", count: 4096))]))),
    HostileServer(
      "extensions of every chunk", ends: .failure(.dataLengthExceedsMaximum),
      answering(
        ok + "Transfer-Encoding: chunked\r\n\r\n",
        then: .repeat([.send("1;" + String(repeating: "x", count: 1024) + "\r\nx\r\n")]))),
    HostileServer(
      "cookies by the hundred", ends: isGood,
      answering(
        ok + (0..<900).map { "Set-Cookie: c\($0)=\(String(repeating: "v", count: 200))\r\n" }.joined()
          + "Content-Length: 4\r\n\r\ngood", then: .serveRoutes)),
    HostileServer(
      "challenges by the hundred", user: true, ends: .response(status: 401, body: ""),
      answering(
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n"
          + (0..<900).map { "WWW-Authenticate: Scheme\($0) a=b\r\n" }.joined() + "\r\n", then: .serveRoutes)),
  ]

  // MARK: - The next request

  /// A server whose extra bytes must not affect the next request.
  private static func poisoned(_ name: String, _ text: String, then steps: TestServer.Step...) -> HostileServer {
    HostileServer(name, ends: isGood, [.expectRequest, .send(latin1: text)] + steps)
  }

  private static let bad = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"

  static let poisons: [HostileServer] = [
    poisoned("two answers", good + bad, then: .hang),
    poisoned("two answers, and the end", good + bad, then: .close),
    poisoned(
      "a time-out later on", good,
      then: .send("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), .close),
    poisoned("100 behind the answer", good + "HTTP/1.1 100 Continue\r\n\r\n", then: .hang),
    poisoned("a body longer than its length", good + "bad", then: .hang),
    poisoned("a line end too many", good + "\r\n", then: .hang),
    poisoned("half an answer", good + "HTTP/1.1 2", then: .hang),
    poisoned(
      "bytes behind the chunks", ok + "Transfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\nbad", then: .hang),
    poisoned("closes without a word", good, then: .close),
    poisoned("resets without a word", good, then: .reset),
    poisoned("ends its side without a word", good, then: .halfClose, .hang),
    poisoned("wants to close, and does not", ok + "Connection: close\r\nContent-Length: 4\r\n\r\ngood", then: .hang),
    poisoned("keeps for no time", ok + "Keep-Alive: timeout=0\r\nContent-Length: 4\r\n\r\ngood", then: .hang),
    poisoned(
      "keeps for a negative time", ok + "Keep-Alive: timeout=-1, max=-1\r\nContent-Length: 4\r\n\r\ngood", then: .close),
    poisoned("keeps for one request", ok + "Keep-Alive: max=1\r\nContent-Length: 4\r\n\r\ngood", then: .close),
    HostileServer(
      "a body that 204 does not have", ends: .response(status: 204, body: ""),
      answering("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nbad", then: .hang)),
    HostileServer(
      "a body that 304 does not have", ends: .response(status: 304, body: ""),
      answering("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nbad", then: .hang)),
    HostileServer(
      "a body that HEAD does not have", .head, ends: .response(status: 200, body: ""), answering(good, then: .hang)),
  ]

  // MARK: - Redirections

  private static func redirecting(_ location: String, _ rest: String = "Content-Length: 0\r\n\r\n") -> String {
    "HTTP/1.1 302 Found\r\nLocation: \(location)\r\n" + rest
  }

  static let redirections: [HostileServer] = [
    HostileServer("in a circle", always: redirecting("/a"), ends: .failure(.httpTooManyRedirects)),
    HostileServer(
      "in a circle, in chunks",
      always: "HTTP/1.1 308 Permanent Redirect\r\nLocation: /a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      ends: .failure(.httpTooManyRedirects)),
    HostileServer(
      "to a file", ends: .failure(.unsupportedURL), answering(redirecting("file:///etc/passwd"), then: .serveRoutes)),
    HostileServer(
      "to a script", ends: .failure(.unsupportedURL), answering(redirecting("javascript:alert(1)"), then: .serveRoutes)),
    HostileServer("to data", ends: .failure(.unsupportedURL), answering(redirecting("data:,bad"), then: .serveRoutes)),
    HostileServer("to nowhere", ends: .response(status: 302, body: ""), answering(redirecting(""), then: .serveRoutes)),
    HostileServer(
      "to two places", ends: .response(status: 302, body: ""),
      answering(redirecting("/a", "Location: /b\r\nContent-Length: 0\r\n\r\n"), then: .serveRoutes)),
    HostileServer(
      "with a body that does not come", ends: isGood,
      answering(redirecting("/good", "Content-Length: 10\r\n\r\nbad"), then: .hang)),
    HostileServer(
      "with a body that drips for ever", ends: isGood,
      answering(redirecting("/good", "\r\n"), then: .repeat([.send("x"), .pause(.milliseconds(20))]))),
    HostileServer(
      "with a body without an end", ends: isGood,
      answering(redirecting("/good", "\r\n"), then: .repeat([.send(String(repeating: "x", count: 4096))]))),
    // CVE-2026-21441: the body of a redirection is not decoded, since no program reads it.
    HostileServer(
      "with a coded body that is none", ends: isGood,
      answering(
        redirecting("/good", "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone"), then: .serveRoutes)),
    HostileServer(
      "with a body that is cut", ends: isGood,
      answering(redirecting("/good", "Content-Length: 10\r\n\r\nbad"), then: .close)),
  ]

  // MARK: - Challenges

  static let demands: [HostileServer] = [
    HostileServer(
      "refuses every password", user: true,
      always: "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n",
      ends: .response(status: 401, body: "")),
    HostileServer(
      "refuses every answer as stale", user: true,
      always: "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"n\", qop=\"auth\", stale=true\r\n"
        + "Content-Length: 0\r\n\r\n",
      ends: .response(status: 401, body: "")),
    HostileServer(
      "demands, with a body that does not come", user: true, ends: isGood,
      answering(
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 10\r\n\r\nbad", then: .hang)),
    HostileServer(
      "demands, with a coded body that is none", user: true, ends: isGood,
      answering(
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Encoding: gzip\r\n"
          + "Content-Length: 4\r\n\r\nnone", then: .serveRoutes)),
    HostileServer(
      "demands for a proxy that there is not", user: true, ends: .response(status: 407, body: "bad"),
      answering(
        "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"a\"\r\nContent-Length: 3\r\n\r\nbad", then: .serveRoutes)),
    HostileServer(
      "demands nothing in particular", user: true, ends: .response(status: 401, body: "bad"),
      answering("HTTP/1.1 401 No\r\nContent-Length: 3\r\n\r\nbad", then: .serveRoutes)),
  ]

  // MARK: - Statuses

  static let statuses: [HostileServer] = [300, 305, 306, 400, 408, 418, 421, 425, 429, 500, 503, 599, 999].map {
    status in
    HostileServer(
      "status \(status)", ends: .response(status: status, body: "good"),
      answering("HTTP/1.1 \(status) So\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\ngood", then: .serveRoutes))
  }

  // MARK: - Codings

  static let codings: [HostileServer] = [
    HostileServer(
      "no gzip", ends: .failure(.cannotDecodeRawData),
      answering(ok + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\ngood", then: .serveRoutes)),
    HostileServer(
      "half a gzip", ends: .failure(.cannotDecodeRawData),
      answering(
        ok + "Content-Encoding: gzip\r\nContent-Length: 12\r\n\r\n\u{1f}\u{8b}\u{8}\0\0\0\0\0\0\u{3}K\u{cf}",
        then: .serveRoutes)),
    HostileServer(
      "more layers than anybody has", ends: .failure(.cannotDecodeRawData),
      answering(
        ok
          + "Content-Encoding: \(Array(repeating: "gzip", count: 1000).joined(separator: ","))\r\nContent-Length: 4\r\n\r\ngood",
        then: .hang)),
    HostileServer(
      "a coding that nobody knows", ends: isGood,
      answering(ok + "Content-Encoding: rot13\r\nContent-Length: 4\r\n\r\ngood", then: .serveRoutes)),
  ]

  private init(_ name: String, user: Bool = false, always text: String, ends end: Outcome) {
    self.name = name
    hasUser = user
    self.end = end
    scripts = []
    always = text
  }

  static let all =
    silences + ends + heads + floods + poisons + redirections + demands + statuses + codings
}
