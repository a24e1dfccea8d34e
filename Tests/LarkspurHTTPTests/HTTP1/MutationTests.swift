import FuzzOracles
import LarkspurHTTP
import Testing

/// Valid responses, in which each byte in turn is replaced by CR, LF, NUL, tab, space and colon.
///
/// The responses are written in parts, and this table says for each part how a replaced byte is treated:
///
/// | part | CR, LF, NUL | tab, space | colon |
/// |---|---|---|---|
/// | status line up to the reason, line ends, colon | error | error | error |
/// | CR of the status line | LF: an empty head, and the rest is content where content may follow | error | error |
/// | reason, value | error | accepted | accepted |
/// | first byte of the first field | error | error | error |
/// | first byte of a later field | error | accepted: a fold | error |
/// | rest of a name | error | error | accepted: a shorter name |
/// | value that frames the body | error | error | error |
/// | white space that makes a fold | error | accepted | error |
/// | chunk size, line ends of chunks | error | error | error |
/// | data | accepted | accepted | accepted |
@Suite struct MutationTests {
  enum Part {
    case statusLine, reason, lineEnd, colon, value, data, chunkSize
    case name
    /// A value with the length or the coding. `nameBehindFraming` is the next name, whose first byte may become a fold
    /// of this value.
    case framingValue
    case nameBehindFraming
    /// The white space that makes a line a fold.
    case foldStart
    /// White space around a framing value.
    case framingSpace
  }

  struct Response: CustomTestStringConvertible {
    var testDescription: String
    var request = RequestContext.get
    /// Whether the remaining bytes may be the content of a head without fields.
    var restMayBeContent = true
    var parts: [(part: Part, text: String)]
  }

  private static func field(_ name: String, _ value: String) -> [(part: Part, text: String)] {
    [(.name, name), (.colon, ":"), (.value, " \(value)"), (.lineEnd, "\r\n")]
  }

  static let responses: [Response] = [
    Response(
      testDescription: "length",
      parts: [(.statusLine, "HTTP/1.1 200 "), (.reason, "OK"), (.lineEnd, "\r\n")]
        + field("Server", "nginx/1.22.1") + field("Date", "Fri, 20 Nov 2026 10:00:00 GMT") + [
          (.name, "Content-Length"), (.colon, ":"), (.framingSpace, " "), (.framingValue, "13"), (.lineEnd, "\r\n"),
          (.nameBehindFraming, "Connection"), (.colon, ":"), (.value, " keep-alive"), (.lineEnd, "\r\n"),
          (.lineEnd, "\r\n"),
          (.data, "Hello, world!"),
        ]),
    Response(
      testDescription: "chunked",
      parts: [(.statusLine, "HTTP/1.1 200 "), (.reason, "All right"), (.lineEnd, "\r\n")] + field("X-1", "y") + [
        (.name, "Transfer-Encoding"), (.colon, ":"), (.framingSpace, " \t"), (.framingValue, "chunked"),
        (.lineEnd, "\r\n"), (.nameBehindFraming, "Set-Cookie"), (.colon, ":"), (.value, " a=b; Path=/"),
        (.lineEnd, "\r\n"),
        (.lineEnd, "\r\n"), (.chunkSize, "1a"), (.lineEnd, "\r\n"), (.data, "abcdefghijklmnopqrstuvwxyz"),
        (.lineEnd, "\r\n"),
        (.chunkSize, "5"), (.lineEnd, "\r\n"), (.data, "12345"), (.lineEnd, "\r\n"), (.chunkSize, "0"),
        (.lineEnd, "\r\n"),
      ] + field("Digest", "abc") + field("Other", "x") + [(.lineEnd, "\r\n")]),
    Response(
      testDescription: "until close",
      parts: [(.statusLine, "HTTP/1.0 404 "), (.reason, "Not Found"), (.lineEnd, "\r\n")] + field("A", "b")
        + field("Bc", "")
        + [(.lineEnd, "\r\n"), (.data, "<html>gone</html>")]),
    Response(
      testDescription: "HEAD", request: .head, restMayBeContent: false,
      parts: [(.statusLine, "HTTP/1.1 200 "), (.reason, "OK"), (.lineEnd, "\r\n")] + field("ETag", "\"x:y\"")
        + field("Vary", "*") + [(.lineEnd, "\r\n")]),
    Response(
      testDescription: "interim", restMayBeContent: false,
      parts: [(.statusLine, "HTTP/1.1 103 "), (.reason, "Early Hints"), (.lineEnd, "\r\n")]
        + field("Link", "</style.css>; rel=preload") + [(.lineEnd, "\r\n")]
        + [(.statusLine, "HTTP/1.1 204 "), (.reason, "No Content"), (.lineEnd, "\r\n")] + field("Age", "1")
        + [(.lineEnd, "\r\n")]),
    Response(
      testDescription: "upgrade", request: .upgrade,
      parts: [(.statusLine, "HTTP/1.1 101 "), (.reason, "Switching Protocols"), (.lineEnd, "\r\n")]
        + field("Upgrade", "websocket") + [(.lineEnd, "\r\n"), (.data, "\u{2}hi")]),
    Response(
      testDescription: "folded",
      parts: [(.statusLine, "HTTP/1.1 200 "), (.reason, "OK"), (.lineEnd, "\r\n")] + field("X", "one") + [
        (.name, "Y"), (.colon, ":"), (.value, " two"), (.lineEnd, "\r\n"), (.foldStart, " "), (.value, "three"),
        (.lineEnd, "\r\n"), (.foldStart, "\t"), (.value, " four"), (.lineEnd, "\r\n"), (.lineEnd, "\r\n"),
      ]),
  ]

  /// Returns whether the response is still accepted with `byte` at `offset` of a part.
  private static func isFine(_ byte: UInt8, at offset: Int, of part: Part, isFirstField: Bool) -> Bool {
    let isSpace = byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    let isColon = byte == UInt8(ascii: ":")
    switch part {
    case .data: return true
    case .statusLine, .lineEnd, .colon, .chunkSize, .framingValue: return false
    case .reason, .value: return isSpace || isColon
    case .framingSpace: return isSpace
    case .name where offset == 0: return isSpace && !isFirstField
    case .nameBehindFraming where offset == 0: return false
    case .name, .nameBehindFraming: return isColon
    case .foldStart: return isSpace
    }
  }

  @Test(arguments: responses) func goodAsItIs(response: Response) {
    let transcript = read(response.parts.map(\.text).joined(), requests: [response.request])
    #expect(transcript.error == nil)
  }

  @Test(arguments: responses, Array("\r\n\0\t :".utf8)) func everyByteReplaced(response: Response, byte: UInt8) {
    let bytes = Array(response.parts.map(\.text).joined().utf8)
    var index = 0
    var isFirstField = true
    var isBehindReason = false
    for (part, text) in response.parts {
      defer { isBehindReason = part == .reason }
      if part == .statusLine || part == .chunkSize { isFirstField = true }
      for (offset, original) in text.utf8.enumerated() {
        defer { index += 1 }
        guard original != byte else { continue }
        var changed = bytes
        changed[index] = byte
        let transcript = read(changed, requests: [response.request], splits: .around([index]))
        let isEmptyHead = isBehindReason && offset == 0 && byte == UInt8(ascii: "\n")
        let expected =
          isEmptyHead
          ? response.restMayBeContent : Self.isFine(byte, at: offset, of: part, isFirstField: isFirstField)
        #expect((transcript.error == nil) == expected, "\(String(decoding: changed, as: UTF8.self).debugDescription)")
      }
      if part == .name { isFirstField = false }
    }
  }
}
