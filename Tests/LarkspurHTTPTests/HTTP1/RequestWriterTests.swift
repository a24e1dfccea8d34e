import FuzzOracles
import LarkspurHTTP
import TestKit
import Testing

@Suite struct RequestWriterTests {
  private func text(_ head: RequestHead) -> String { String(decoding: head.bytes, as: UTF8.self) }

  private func refusal(_ body: () throws(RequestError) -> Void) -> RequestError? {
    do {
      try body()
      return nil
    } catch {
      return error
    }
  }

  private func refusal(method: String = "GET", target: String = "/", host: String = "a") -> RequestError? {
    refusal { () throws(RequestError) in _ = try RequestWriter(method: method, target: target, host: host) }
  }

  private func refusal(ofField name: String, _ value: String) -> RequestError? {
    refusal { () throws(RequestError) in
      var writer = try RequestWriter(method: "GET", target: "/", host: "a")
      try writer.field(name, value)
    }
  }

  // MARK: - Exact bytes

  @Test func aGet() throws {
    var writer = try RequestWriter(method: "GET", target: "/index.html?q=1", host: "example.org")
    try writer.field("Accept", "*/*")
    try writer.field("X-Empty", "")
    #expect(
      text(writer.finish())
        == "GET /index.html?q=1 HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nX-Empty: \r\n\r\n")
  }

  @Test func fieldsAreWrittenAsTheyAre() throws {
    var writer = try RequestWriter(method: "patch", target: "*", host: "[::1]:8080")
    try writer.field("x-MiXeD", " a\tb ")
    try writer.field("x-mixed", "größe")
    try writer.field("!#$%&'*+-.^_`|~", ":")
    #expect(
      text(writer.finish(body: .length(12)))
        == "patch * HTTP/1.1\r\nHost: [::1]:8080\r\nx-MiXeD:  a\tb \r\nx-mixed: größe\r\n!#$%&'*+-.^_`|~: :\r\n"
        + "Content-Length: 12\r\n\r\n")
  }

  @Test func hostIsSentEvenIfItIsEmpty() throws {
    #expect(
      text(try RequestWriter(method: "GET", target: "/", host: "").finish()) == "GET / HTTP/1.1\r\nHost: \r\n\r\n")
  }

  @Test(arguments: [
    ("GET", RequestWriter.Body.none, ""), ("HEAD", .none, ""), ("DELETE", .none, ""), ("OPTIONS", .none, ""),
    ("CONNECT", .none, ""), ("POST", .none, "Content-Length: 0\r\n"), ("PUT", .none, "Content-Length: 0\r\n"),
    ("PATCH", .none, "Content-Length: 0\r\n"), ("post", .none, ""), ("GET", .length(0), "Content-Length: 0\r\n"),
    ("POST", .length(.max), "Content-Length: 18446744073709551615\r\n"),
    ("PUT", .chunked, "Transfer-Encoding: chunked\r\n"),
    ("GET", .chunked, "Transfer-Encoding: chunked\r\n"),
  ])
  func bodyFramingFollowsLength(method: String, body: RequestWriter.Body, line: String) throws {
    let head = try RequestWriter(method: method, target: "/", host: "a").finish(body: body)
    #expect(text(head) == "\(method) / HTTP/1.1\r\nHost: a\r\n\(line)\r\n")
  }

  /// The context tells the parser what it has to know about the request.
  @Test func context() throws {
    func context(_ method: String, _ name: String = "X") throws -> RequestContext {
      var writer = try RequestWriter(method: method, target: "/", host: "a")
      try writer.field(name, "x")
      return writer.finish().context
    }
    #expect(try context("GET") == RequestContext(method: .other, offersUpgrade: false))
    #expect(try context("HEAD") == RequestContext(method: .head, offersUpgrade: false))
    #expect(try context("CONNECT") == RequestContext(method: .connect, offersUpgrade: false))
    #expect(try context("head").method == .other, "methods are case-sensitive")
    #expect(try context("GET", "UPGRADE").offersUpgrade)
    #expect(try !context("GET", "Upgrades").offersUpgrade)
    #expect(try !context("GET", "Connection").offersUpgrade)
  }

  // MARK: - Refusals

  /// CVE-2020-26116: a line end in a method must not begin another field.
  @Test(arguments: [
    "", " ", "GET ", "GE T", "GET\r\n", "G\0ET", "G\tET", "G:ET", "GÉT", "GET / HTTP/1.1\r\nX:", "(GET)", "G/ET",
  ])
  func methods(method: String) {
    #expect(refusal(method: method) == .methodInvalid(method))
  }

  /// CVE-2022-31150: no target ends its line, and none begins another request.
  /// CVE-2019-9740: a line end in the query of a URL must not begin another field.
  @Test(arguments: [
    "", " ", "/a b", "/ HTTP/1.1\r\nX: y", "/\r", "/\n", "/\0", "/\t", "/ü", "/\u{7f}", "/\u{1b}",
    "http://a/\r\n\r\nGET /", "/a ",
  ])
  func targets(target: String) {
    #expect(refusal(target: target) == .targetInvalid(target))
  }

  /// CVE-2023-29406, CVE-2022-31150: no value ends its line, nor does that of Host.
  /// CVE-2023-0040, CVE-2022-3215: a line end in a value must not begin another field or another message.
  @Test(arguments: ["a\r\nX: y", "a\n", "a\r", "a\0", "a\u{1}", "a\u{7f}", "\r\n", "\u{b}"]) func values(value: String)
  {
    #expect(refusal(ofField: "X-Name", value) == .fieldValueInvalid(name: "X-Name"))
    #expect(refusal(host: value) == .fieldValueInvalid(name: "Host"))
    #expect(
      refusal { () throws(RequestError) in _ = try ChunkedEncoder.end(trailers: [Field("T", value)]) }
        == .fieldValueInvalid(name: "T"))
  }

  /// CVE-2023-0040, CVE-2022-3215: a line end in a name must not begin another field or another message.
  @Test(arguments: [
    "", " ", "X ", " X", "X Y", "X:", "X\r\nY", "X\n", "X\r", "X\0", "X\t", "Xü", "X(", "X\u{7f}", "\"X\"",
  ])
  func names(name: String) {
    #expect(refusal(ofField: name, "value") == .fieldNameInvalid(name))
    #expect(
      refusal { () throws(RequestError) in _ = try ChunkedEncoder.end(trailers: [Field(name, "value")]) }
        == .fieldNameInvalid(name))
  }

  /// Every ASCII character in every part of the request.
  @Test(arguments: UInt8(0)..<128) func everyByte(byte: UInt8) {
    let text = "a\(Unicode.Scalar(byte))b"
    let isToken = refusal(ofField: text, "") == nil
    #expect((refusal(method: text) == nil) == isToken)
    #expect((refusal(ofField: "X", text) == nil) == (byte == 9 || byte >= 32 && byte != 127))
    #expect((refusal(target: text) == nil) == (byte > 32 && byte < 127))
  }

  @Test(arguments: ["Content-Length", "content-length", "TRANSFER-ENCODING", "Transfer-Encoding"])
  func whatFollowsFromTheBody(name: String) {
    #expect(refusal(ofField: name, "5") == .fieldReserved(name: name))
  }

  @Test func nothingIsKeptOfWhatWasRefused() throws {
    var writer = try RequestWriter(method: "GET", target: "/", host: "a")
    try writer.field("A", "1")
    #expect(throws: RequestError.fieldValueInvalid(name: "B")) { try writer.field("B", "2\r\nC: 3") }
    #expect(throws: RequestError.fieldNameInvalid("B\r\nC")) { try writer.field("B\r\nC", "3") }
    try writer.field("D", "4")
    #expect(text(writer.finish()) == "GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nD: 4\r\n\r\n")
  }

  /// Descriptions name the part, and do not repeat a value that could be secret.
  @Test func descriptions() {
    #expect(RequestError.methodInvalid("G T").description.contains("method \"G T\""))
    #expect(RequestError.targetInvalid("/a b").description.contains("target \"/a b\""))
    #expect(RequestError.fieldNameInvalid("a b").description.contains("field name \"a b\""))
    #expect(
      refusal(ofField: "Authorization", "Basic c2VjcmV0\r\n")?.description
        == "the value of Authorization holds a control character")
    #expect(RequestError.fieldReserved(name: "Content-Length").description.contains("Content-Length"))
  }

  // MARK: - Round trips

  /// A written request is read back as intended: as a response's fields, and as a request line.
  @Test func randomRequests() throws {
    var random = SeededGenerator(for: "RequestWriterTests.randomRequests")
    let token = Array("abcXYZ019!#$%&'*+-.^_`|~")
    let value = Array("abc XYZ\t019:;,=\"\\/()<>@[]?{}ü€~")
    let target = Array("/abc?XYZ=019&%20:;,@[]#~'()*+!$\"<>\\^`{|}")
    func word(_ letters: [Character], _ counts: ClosedRange<Int>) -> String {
      String(
        (0..<Int.random(in: counts, using: &random)).map { _ in
          letters[Int.random(in: 0..<letters.count, using: &random)]
        })
    }
    for round in 0..<500 {
      let (method, target, host) = (word(token, 1...10), word(target, 1...40), word(value, 0...20))
      let fields = (0..<Int.random(in: 0...10, using: &random)).map { _ in (word(token, 1...20), word(value, 0...60)) }
      var writer = try RequestWriter(method: method, target: target, host: host)
      for (name, value) in fields { try writer.field(name, value) }
      let bytes = writer.finish().bytes
      let line = Array("\(method) \(target) HTTP/1.1\r\n".utf8)
      #expect(bytes.starts(with: line), "seed \(random.seed), round \(round)")

      // With a status line in place of the request line, the bytes are a response head.
      let head = Listener.transcript(
        of: [(Array("HTTP/1.1 204\r\n".utf8) + bytes.dropFirst(line.count))[...]]
      ).heads.first
      let expected = [("Host", host)] + fields
      #expect(head?.fields.map(\.name) == expected.map(\.0), "seed \(random.seed), round \(round)")
      let trimmed = expected.map { $0.1.trimming { $0 == " " || $0 == "\t" } }
      #expect(head?.fields.map(\.value) == trimmed, "seed \(random.seed), round \(round)")
    }
  }
}

@Suite struct ChunkedEncoderTests {
  @Test func sizesAreHexadecimal() {
    for (count, text) in [
      (1, "1\r\n"), (10, "a\r\n"), (255, "ff\r\n"), (65536, "10000\r\n"), (.max, "7fffffffffffffff\r\n"),
    ] {
      #expect(ChunkedEncoder.start(ofChunk: count) == Array(text.utf8))
    }
    #expect(ChunkedEncoder.endOfChunk == [13, 10])
  }

  @Test func theEnd() throws {
    #expect(try ChunkedEncoder.end() == Array("0\r\n\r\n".utf8))
    #expect(
      try ChunkedEncoder.end(trailers: [Field("Digest", "x"), Field("Empty", "")])
        == Array("0\r\nDigest: x\r\nEmpty: \r\n\r\n".utf8))
  }

  /// RFC 9110 6.5.1: a trailer comes too late to say where the body ends.
  @Test(arguments: ["Content-Length", "transfer-encoding"]) func reservedTrailers(name: String) {
    #expect(throws: RequestError.fieldReserved(name: name)) { try ChunkedEncoder.end(trailers: [Field(name, "5")]) }
  }

  /// RFC 9110 6.5.1: these fields are evaluated before the content.
  @Test(arguments: [
    "Authorization", "host", "Content-Type", "content-encoding", "Trailer", "TE", "If-Match", "if-none-match", "Cookie",
    "Expect", "Connection", "Cache-Control", "Range",
  ]) func fieldsThatAreNeededBeforeTheBody(name: String) {
    #expect(throws: RequestError.fieldNotForTrailers(name: name)) { try ChunkedEncoder.check(trailer: name) }
    #expect(throws: RequestError.fieldNotForTrailers(name: name)) {
      try ChunkedEncoder.end(trailers: [Field(name, "x")])
    }
    #expect(RequestError.fieldNotForTrailers(name: name).description.contains(name))
  }

  @Test func randomBodies() throws {
    var random = SeededGenerator(for: "ChunkedEncoderTests.randomBodies")
    for round in 0..<300 {
      var encoded = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
      var body: [UInt8] = []
      for _ in 0..<Int.random(in: 0...5, using: &random) {
        let data = (0..<Int.random(in: 1...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        encoded += ChunkedEncoder.start(ofChunk: data.count) + data + ChunkedEncoder.endOfChunk
        body += data
      }
      encoded += try ChunkedEncoder.end(trailers: [Field("A", "b"), Field("C", "ü")])
      let sizes = (0..<3).map { _ in UInt8.random(in: 0...255, using: &random) }
      let transcript = Listener.transcript(of: Cuts.cycling(encoded, sizes: sizes))
      #expect(transcript.body == body, "seed \(random.seed), round \(round)")
      #expect(
        transcript.entries.last == .end(trailers: [.init(name: "A", value: "b"), .init(name: "C", value: "ü")]),
        "seed \(random.seed), round \(round)")
    }
  }
}

extension String {
  fileprivate func trimming(_ isTrimmed: (Character) -> Bool) -> String {
    String(drop(while: isTrimmed).reversed().drop(while: isTrimmed).reversed())
  }
}
