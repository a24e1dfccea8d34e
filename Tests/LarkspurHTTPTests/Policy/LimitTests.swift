import FuzzOracles
import LarkspurBytes
import LarkspurHTTP
import Testing

/// Each limit at its value and one past it: with a small value, for which every split is tried, and with the default.
@Suite struct LimitTests {
  private func limits(_ path: WritableKeyPath<Limits, Int>, _ value: Int) -> Limits {
    var limits = Limits()
    limits[keyPath: path] = value
    return limits
  }

  private func splits(_ offsets: Int..., for count: Int) -> Splits {
    count < 1000 ? .everywhere : .around(offsets + [count])
  }

  /// Returns a head of exactly `count` bytes, in lines of at most about a thousand bytes.
  private func head(ofBytes count: Int) -> String {
    var text = "HTTP/1.1 204 X\r\n"
    while count - text.utf8.count - 2 > 1000 { text += "A: \(repeated("a", 800))\r\n" }
    return text + "B:\(repeated("b", count - text.utf8.count - 6))\r\n\r\n"
  }

  // MARK: - Head

  @Test(arguments: [60, 300 * 1024]) func headBytes(max: Int) {
    let limits = limits(\.headBytesMax, max)
    let atLimit = head(ofBytes: max)
    #expect(atLimit.utf8.count == max)
    let accepted = read(atLimit, limits: limits, splits: splits(0, for: max))
    #expect(accepted.heads.first?.byteCount == max)
    #expect(accepted.error == nil)

    let refused = read(head(ofBytes: max + 1), limits: limits, splits: splits(max, for: max))
    #expect(refused.entries == [.failed(.headTooLarge(limit: max))])
    let interim = head(ofBytes: max + 1).replacing("204", with: "103")
    #expect(read(interim, limits: limits, splits: splits(max, for: max)).entries == refused.entries)
  }

  /// CVE-2023-38039: a head without an end fails.
  /// The error comes when the limit is reached, without another byte that could change nothing.
  @Test(arguments: [60, 300 * 1024]) func aHeadThatNeverEnds(max: Int) {
    let start = Array(head(ofBytes: max + 100).utf8.prefix(max))
    #expect(
      read(start, limits: limits(\.headBytesMax, max), splits: splits(for: max)).error == .headTooLarge(limit: max))
    let shorter = Array(start.dropLast())
    #expect(read(shorter, limits: limits(\.headBytesMax, max), splits: splits(for: max)).error == .truncated(.head))
  }

  @Test(arguments: [60, 300 * 1024]) func eachInterimHeadHasTheWholeAllowance(max: Int) {
    let interim = head(ofBytes: max).replacing("204", with: "103")
    let transcript = read(
      interim + interim + head(ofBytes: max), limits: limits(\.headBytesMax, max),
      splits: splits(max, 2 * max, for: max))
    #expect(transcript.interims.count == 2)
    #expect(transcript.error == nil)
  }

  /// A head limit below the length of a status line still holds.
  @Test(arguments: 0...20) func tinyHeadLimits(max: Int) {
    let error = read("HTTP/1.1 204 X\r\n\r\n", limits: limits(\.headBytesMax, max)).error
    // A line must not be longer than the whole head may be.
    #expect(error == (max < 13 ? .fieldLineTooLong(limit: max) : max < 18 ? .headTooLarge(limit: max) : nil))
  }

  // MARK: - Lines

  @Test(arguments: [40, 64 * 1024]) func fieldLineBytes(max: Int) {
    let limits = limits(\.fieldLineBytesMax, max)
    // The length is reached in the value, in the name, in white space, and over folds.
    for (start, end) in [
      ("A: ", ""), ("", ":"), ("A:", " b"), ("A: b", " "), ("A: b\r\n ", ""), ("A: b\r\n\t\r\n ", "c"),
    ] {
      let filler = start.isEmpty || start.hasSuffix(": ") || start.contains("\r") ? "x" : " "
      func response(lineBytes count: Int) -> String {
        let line = start + repeated(filler, count - start.utf8.count - end.utf8.count) + end
        return "HTTP/1.1 204 X\r\nFirst: 1\r\n\(line)\r\nLast: 1\r\n\r\n"
      }
      let before = 26 + max
      let accepted = read(response(lineBytes: max), limits: limits, splits: splits(before, for: max))
      #expect(accepted.heads.first?.fields.count == 3)
      let refused = read(response(lineBytes: max + 1), limits: limits, splits: splits(before, for: max))
      #expect(refused.entries == [.failed(.fieldLineTooLong(limit: max))], "\(start)...\(end)")
    }
  }

  @Test(arguments: [40, 64 * 1024]) func aLineThatNeverEnds(max: Int) {
    let start = "HTTP/1.1 204 X\r\n" + repeated("x", max + 1)
    let refused = read(start, limits: limits(\.fieldLineBytesMax, max), splits: splits(16 + max, for: max))
    #expect(refused.error == .fieldLineTooLong(limit: max))
    let shorter = read(String(start.dropLast()), limits: limits(\.fieldLineBytesMax, max), splits: splits(for: max))
    #expect(shorter.error == .truncated(.head))
  }

  @Test(arguments: [40, 64 * 1024]) func statusLineBytes(max: Int) {
    func response(lineBytes count: Int) -> String { "HTTP/1.1 204 \(repeated("x", count - 13))\r\n\r\n" }
    let limits = limits(\.fieldLineBytesMax, max)
    #expect(read(response(lineBytes: max), limits: limits, splits: splits(max, for: max)).error == nil)
    #expect(
      read(response(lineBytes: max + 1), limits: limits, splits: splits(max, for: max)).entries == [
        .failed(.fieldLineTooLong(limit: max))
      ])
  }

  // MARK: - Counts

  @Test(arguments: [0, 3, 1000]) func fields(max: Int) {
    let limits = limits(\.fieldsMax, max)
    func response(fields count: Int) -> String { "HTTP/1.1 204 X\r\n\(repeated("A:\r\n", count))\r\n" }
    let accepted = read(response(fields: max), limits: limits, splits: splits(16 + 4 * max, for: 4 * max))
    #expect(accepted.heads.first?.fields.count == max)
    let refused = read(response(fields: max + 1), limits: limits, splits: splits(16 + 4 * max, for: 4 * max))
    #expect(refused.entries == [.failed(.tooManyFields(limit: max))])
  }

  @Test func aFoldIsNoField() {
    let transcript = read("HTTP/1.1 204 X\r\nA: b\r\n c\r\n d\r\n\r\n", limits: limits(\.fieldsMax, 1))
    #expect(transcript.heads.first?.fields == [.init(name: "A", value: "b c d")])
  }

  /// CVE-2021-3737: a server that sends 100 responses without end does not hold the client up for ever.
  @Test(arguments: [0, 1, 32]) func interimResponses(max: Int) {
    let limits = limits(\.interimResponsesMax, max)
    func responses(interim count: Int) -> String { repeated("HTTP/1.1 100\r\n\r\n", count) + "HTTP/1.1 204\r\n\r\n" }
    let accepted = read(responses(interim: max), limits: limits)
    #expect(accepted.interims.count == max)
    #expect(accepted.error == nil)
    let refused = read(responses(interim: max + 1), limits: limits)
    #expect(refused.interims.count == max)
    #expect(refused.error == .tooManyInterimResponses(limit: max))
  }

  /// The content of a request earns interim responses.
  @Test(arguments: [(0, 0), (9, 0), (10, 1), (35, 3), (-1, 0)])
  func interimResponsesOfAnUpload(bytes: Int, earned: Int) {
    var limits = limits(\.interimResponsesMax, 2)
    limits.bytesPerInterimResponse = 10
    for count in [2 + earned, 3 + earned] {
      var parser = ResponseParser(limits: limits)
      let hasBegun = parser.start(RequestContext())
      #expect(hasBegun)
      let response = Array((repeated("HTTP/1.1 104\r\n\r\n", count) + "HTTP/1.1 204\r\n\r\n").utf8)
      var (consumed, interims) = (0, 0)
      let end: Result<Void, ResponseError> = Result { () throws(ResponseError) in
        while true {
          switch try parser.next(in: response.span, consumed: &consumed) {
          case .interim:
            interims += 1
            parser.requestContentSent(bytes: bytes)
          case .head: return
          default: return
          }
        }
      }
      #expect(interims == 2 + earned)
      if count == 2 + earned {
        #expect(throws: Never.self) { try end.get() }
      } else {
        #expect(throws: ResponseError.tooManyInterimResponses(limit: 2)) { try end.get() }
      }
    }
  }

  // MARK: - Chunked bodies

  private static let chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

  @Test(arguments: [8, 16 * 1024]) func chunkExtensionBytes(max: Int) {
    let limits = limits(\.chunkExtensionBytesMax, max)
    func response(extensionBytes count: Int) -> String {
      Self.chunkedHead + "1;\(repeated("x", count - 1))\r\na\r\n0\r\n\r\n"
    }
    let behind = Self.chunkedHead.utf8.count + 1 + max
    #expect(read(response(extensionBytes: max), limits: limits, splits: splits(behind, for: max)).error == nil)
    #expect(
      read(response(extensionBytes: max + 1), limits: limits, splits: splits(behind, for: max)).entries.dropFirst() == [
        .failed(.chunkExtensionsTooLarge(limit: max))
      ])
  }

  /// Chunk extensions count over all chunks: otherwise a server could send them without end, with one byte of data
  /// each.
  /// CVE-2023-39326: bytes that are not data of the body have a limit of their own.
  @Test(arguments: [8, 16 * 1024]) func chunkExtensionBytesInAll(max: Int) {
    let limits = limits(\.chunkExtensionBytesMax, max)
    let chunks = repeated("1;x\r\na\r\n", max / 2)
    let offset = Self.chunkedHead.utf8.count + chunks.utf8.count
    let accepted = read(Self.chunkedHead + chunks + "0\r\n\r\n", limits: limits, splits: splits(offset, for: max))
    #expect(accepted.body.count == max / 2)
    #expect(accepted.error == nil)
    let refused = read(Self.chunkedHead + chunks + "0;x\r\n\r\n", limits: limits, splits: splits(offset, for: max))
    #expect(refused.body.count == max / 2)
    #expect(refused.error == .chunkExtensionsTooLarge(limit: max))
  }

  @Test func noExtensionsAtAll() {
    #expect(read(Self.chunkedHead + "1\r\na\r\n0\r\n\r\n", limits: limits(\.chunkExtensionBytesMax, 0)).error == nil)
    #expect(
      read(Self.chunkedHead + "1;x\r\na\r\n0\r\n\r\n", limits: limits(\.chunkExtensionBytesMax, 0)).error
        == .chunkExtensionsTooLarge(limit: 0))
  }

  /// Trailers count with the ends of their lines and without the final empty line.
  /// CVE-2025-53643: trailers have a limit.
  @Test(arguments: [20, 16 * 1024]) func trailerBytes(max: Int) {
    let limits = limits(\.trailerBytesMax, max)
    func response(trailerBytes count: Int) -> String {
      Self.chunkedHead + "0\r\nA: b\r\nB:\(repeated("b", count - 10))\r\n\r\n"
    }
    let behind = Self.chunkedHead.utf8.count + 3 + max
    let accepted = read(response(trailerBytes: max), limits: limits, splits: splits(behind, for: max))
    #expect(accepted.endCount == 1)
    #expect(accepted.error == nil)
    let refused = read(response(trailerBytes: max + 1), limits: limits, splits: splits(behind, for: max))
    #expect(refused.entries.dropFirst() == [.failed(.trailersTooLarge(limit: max))])
  }

  @Test(arguments: [20, 16 * 1024]) func trailersThatNeverEnd(max: Int) {
    let response = Self.chunkedHead + "0\r\nA: \(repeated("x", max + 2))"
    let refused = read(response, limits: limits(\.trailerBytesMax, max), splits: splits(max, for: max))
    #expect(refused.error == .trailersTooLarge(limit: max))
  }

  @Test func noTrailersAtAll() {
    #expect(read(Self.chunkedHead + "0\r\n\r\n", limits: limits(\.trailerBytesMax, 0)).error == nil)
    #expect(
      read(Self.chunkedHead + "0\r\nA:\r\n\r\n", limits: limits(\.trailerBytesMax, 0)).error
        == .trailersTooLarge(limit: 0))
  }

  @Test func trailerLinesAndFields() {
    let two = Self.chunkedHead + "0\r\nA: b\r\nC: d\r\n\r\n"
    #expect(read(two, limits: limits(\.fieldsMax, 2)).error == nil)
    #expect(read(two, limits: limits(\.fieldsMax, 1)).error == .tooManyFields(limit: 1))
    let long = Self.chunkedHead + "0\r\nA: \(repeated("b", 47))\r\n\r\n"
    #expect(read(long, limits: limits(\.fieldLineBytesMax, 50)).error == nil)
    #expect(read(long, limits: limits(\.fieldLineBytesMax, 49)).error == .fieldLineTooLong(limit: 49))
  }

  // MARK: - Memory

  /// Whatever a server sends, the parser keeps at most one head, and keeps nothing that it has delivered.
  @Test func whatIsKept() {
    let endless: [(String, String)] = [
      ("HTTP/1.1 200 OK\r\n", "A: b\r\n"), ("HTTP/1.1 103 X\r\n", "A: b\r\n"), ("HTTP/1.1 200 OK\r\nA: ", "b"),
      ("HTTP/1.1 200 ", "x"),
      ("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", "body"), (Self.chunkedHead, "1;x\r\na\r\n"),
      (Self.chunkedHead + "1;", "x"), (Self.chunkedHead + "1;x=\"", "\\\""), (Self.chunkedHead + "0\r\n", "A: b\r\n"),
      ("HTTP/1.1 200 OK\r\n\r\n", "body"), ("", "HTTP/1.1 100 X\r\n\r\n"), ("HTTP/1.1 200 OK\r\nA: b", "\r\n "),
    ]
    for (start, rest) in endless {
      var listener = Listener(limits: ResponseParserOracle.tightLimits)
      listener.receive(Array(start.utf8)[...])
      let piece = Array(rest.utf8)[...]
      for _ in 0..<1000 { listener.receive(piece) }
      let kept = listener.retainedBytesMax
      #expect(kept <= 200, "\(start)...")
    }
  }
}
