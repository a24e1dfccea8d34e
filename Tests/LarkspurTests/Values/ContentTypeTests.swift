import LarkspurHTTP
import Testing

@testable import Larkspur

@Suite struct ContentTypeTests {
  private static let values = [
    "text/html", "Text/HTML", "application/json; charset=utf-8", "application/json;charset=UTF-8",
    "application/vnd.api+json", "text/plain;  charset=iso-8859-1", "image/x-!#$%&'*+-.^_`|~", "a/b",
    // What only the whole reader understands.
    "text/html; charset=\"utf-8\"", "text/html; charset=", "text/html; charset= utf-8", "text/html; boundary=x",
    "text/html; charset=utf-8; q=1", "text/html, text/plain", "text", "/", "text/", "/html", "text/html;", "",
    " text/html", "text/html ", "*/*", "text/*", "text/html; charset=utf-8 ", "text/html;charset=utf-8,text/plain",
    "text /html", "täxt/html", "text/html; chärset=utf-8", "text//html", "multipart/form-data; boundary=charset=x",
  ]

  /// The short way says what the long one says, or nothing.
  @Test(arguments: values) func theShortWay(value: String) {
    let whole = MediaType(fieldValues: [value])
    if let plain = ContentType.plain(value) {
      #expect(plain.mimeType == whole?.essence && plain.charset == whole?.charset)
    }
    let parsed = ContentType.parse([value])
    if let whole { #expect(parsed.mimeType == whole.essence && parsed.charset == whole.charset) }
  }

  @Test func whatIsCommonGoesTheShortWay() {
    for value in Self.values.prefix(8) { #expect(ContentType.plain(value) != nil, "\(value)") }
  }
}
