import LarkspurBytes
import LarkspurHTTP
import Testing

@testable import Larkspur

@Suite struct ContentTypeTests {
  private static let values = [
    "text/html", "Text/HTML", "application/json; charset=utf-8", "application/json;charset=UTF-8",
    "application/vnd.api+json", "text/plain;  charset=iso-8859-1", "image/x-!#$%&'*+-.^_`|~", "a/b",
    // Only the complete parser understands the following values.
    "text/html; charset=\"utf-8\"", "text/html; charset=", "text/html; charset= utf-8", "text/html; boundary=x",
    "text/html; charset=utf-8; q=1", "text/html, text/plain", "text", "/", "text/", "/html", "text/html;", "",
    " text/html", "text/html ", "*/*", "text/*", "text/html; charset=utf-8 ", "text/html;charset=utf-8,text/plain",
    "text /html", "täxt/html", "text/html; chärset=utf-8", "text//html", "multipart/form-data; boundary=charset=x",
  ]

  /// Makes fields as they come from the wire, after another field whose name has an equal length.
  private static func fields(_ values: String...) -> ResponseFields {
    var (bytes, table) = ([UInt8]("x-type-count7".utf8), FieldTable())
    table.append(FieldPosition(name: 0..<12, value: 12..<13))
    for value in values {
      let name = bytes.count..<bytes.count + 12
      bytes += Array("Content-Type\(value)".utf8)
      table.append(FieldPosition(name: name, value: name.upperBound..<bytes.count))
    }
    return .wire(bytes: bytes, table: table)
  }

  /// The fast parser returns the complete parser's result, or `nil`.
  @Test(arguments: values) func theShortWay(value: String) {
    let whole = MediaType(fieldValues: [value])
    if let plain = ContentType.plain(value.utf8Span.span) {
      #expect(plain.mimeType == whole?.essence && plain.charset == whole?.charset)
    }
    let parsed = ContentType.parse(Self.fields(value))
    if let whole { #expect(parsed.mimeType == whole.essence && parsed.charset == whole.charset) }
    // Of repeated fields the last one counts, so the fast parser cannot be used for either alone.
    let twice = MediaType(fieldValues: [value, "text/css"])
    #expect(ContentType.parse(Self.fields(value, "text/css")).mimeType == twice?.essence)
  }

  @Test func whatIsCommonGoesTheShortWay() {
    for value in Self.values.prefix(8) { #expect(ContentType.plain(value.utf8Span.span) != nil, "\(value)") }
  }
}
