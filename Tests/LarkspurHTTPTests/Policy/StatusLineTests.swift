import FuzzOracles
import LarkspurHTTP
import Testing

/// The version is HTTP/1.x and nothing else, the status is three digits from 100 to 999, and the reason is any text or
/// none.
@Suite struct StatusLineTests {
  private func head(_ statusLine: String, sourceLocation: SourceLocation = #_sourceLocation) -> Transcript.Head? {
    read("\(statusLine)\r\n\r\n", sourceLocation: sourceLocation).heads.first
  }

  private func error(_ statusLine: String, sourceLocation: SourceLocation = #_sourceLocation) -> ResponseError? {
    let transcript = read("\(statusLine)\r\n\r\n", sourceLocation: sourceLocation)
    #expect(transcript.entries.count == 1, "nothing comes before the error", sourceLocation: sourceLocation)
    return transcript.error
  }

  @Test func oneDotZeroIsItself() {
    #expect(head("HTTP/1.0 200 OK")?.minorVersion == 0)
  }

  @Test(arguments: 1...9) func everyLaterOneIsOneDotOne(minor: Int) {
    #expect(head("HTTP/1.\(minor) 200 OK")?.minorVersion == 1)
  }

  @Test(arguments: [
    "HTTP/0.9 200 OK", "HTTP/2.0 200 OK", "HTTP/2 200 OK", "HTTP/1 200 OK", "HTTP/1.10 200 OK", "HTTP/01.1 200 OK",
    "HTTP/1.01 200 OK", "HTTP/11.1 200 OK", "HTTP/1.x 200 OK", "HTTP/1,1 200 OK", "HTTP/-1.1 200 OK",
    "HTTP/ 1.1 200 OK",
    "HTTP/1. 200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1200 OK",
  ])
  func otherVersions(statusLine: String) {
    #expect(error(statusLine) == .versionUnsupported)
  }

  @Test(arguments: [
    "http/1.1 200 OK", "Http/1.1 200 OK", "HTTPS/1.1 200 OK", "RTSP/1.0 200 OK", "ICY 200 OK", " HTTP/1.1 200 OK",
    "200 OK",
    "\u{feff}HTTP/1.1 200 OK", "\0HTTP/1.1 200 OK",
  ])
  func notHTTPAtAll(statusLine: String) {
    #expect(error(statusLine) == .notHTTP)
  }

  /// A response of HTTP/0.9, a body without a head, is refused.
  @Test func zeroNine() {
    #expect(read("<html>hello</html>").error == .notHTTP)
    #expect(read("HTTP").error == .truncated(.statusLine))
    #expect(read("H").error == .truncated(.statusLine))
  }

  /// An empty line before the status line, which many parsers accept, is refused: the line is the rest of a body that
  /// was longer than announced.
  @Test(arguments: ["\r\n", "\n", "\r"]) func lineEndBeforeTheStatusLine(lineEnd: String) {
    #expect(error("\(lineEnd)HTTP/1.1 200 OK") == .notHTTP)
  }

  @Test(arguments: [100, 101, 199, 200, 299, 418, 600, 999]) func statusesInRange(status: Int) {
    let transcript = read("HTTP/1.1 \(status) X\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", requests: [.upgrade])
    #expect((transcript.interims + transcript.heads).first?.status == status)
  }

  @Test(arguments: [
    "000", "001", "099", "99", "9", "", "1000", "20", "2 0", "20x", "0x1", "-20", "+20", "２００", "200x", " 200",
    "2000 OK",
    "200,", "200\0", "200\t",
  ])
  func otherStatuses(status: String) {
    #expect(error("HTTP/1.1 \(status)") == .statusInvalid)
    #expect(error("HTTP/1.1 \(status) OK") == .statusInvalid)
  }

  @Test(arguments: [
    ("HTTP/1.1 200", ""), ("HTTP/1.1 200 ", ""), ("HTTP/1.1 200 OK", "OK"), ("HTTP/1.1 200  OK ", " OK "),
    ("HTTP/1.1 200 Not\tModified: at all", "Not\tModified: at all"), ("HTTP/1.1 200 Größe", "Größe"),
  ])
  func reasons(statusLine: String, reason: String) {
    #expect(head(statusLine)?.reason == reason)
  }

  @Test func aReasonMayBeLatin1() {
    let bytes = Array("HTTP/1.1 500 Ori".utf8) + [0xeb] + Array("ntatie\r\n\r\n".utf8)
    #expect(read(bytes).heads.first?.reason == "Oriëntatie")
  }

  @Test(arguments: ["O\0K", "OK\0", "\u{1}", "O\u{7f}K", "O\u{b}K", "\u{1b}[31m"]) func controlsInAReason(
    reason: String
  ) {
    #expect(error("HTTP/1.1 200 \(reason)") == .reasonInvalid)
  }
}
