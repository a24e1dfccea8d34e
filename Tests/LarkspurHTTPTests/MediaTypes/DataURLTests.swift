import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct DataURLTests {
  static let unnamed = "text/plain;charset=US-ASCII"

  @Test(
    arguments: [
      ("data:,", unnamed, ""), ("data:,A%20brief%20note", unnamed, "A brief note"), ("DATA:,X", unnamed, "X"),
      ("data:text/html,X", "text/html", "X"), ("data:text/html;charset=UTF-8,X", "text/html;charset=UTF-8", "X"),
      ("data:;charset=utf-8,X", "text/plain;charset=utf-8", "X"), ("data:nonsense,X", unnamed, "X"),
      ("data: text/html ,X", "text/html", "X"), ("data:,X,Y", unnamed, "X,Y"), ("data:,X#Y", unnamed, "X"),
      ("data:,a?b", unnamed, "a?b"), ("data:,%zz%4", unnamed, "%zz%4"), ("data:;base64,WA==", unnamed, "X"),
      ("data:text/html;base64,WA", "text/html", "X"), ("data:text/html; base64,WA==", "text/html", "X"),
      ("data:text/html;BASE64,WA==", "text/html", "X"), ("data:text/html;  base64  ,WA==", "text/html", "X"),
      ("data:;charset=x;base64,W%41==", "text/plain;charset=x", "X"), ("data:;base64,W A%0A%09==", unnamed, "X"),
      ("data:;base64,WB==", unnamed, "X"), ("data:;base64,", unnamed, ""),
      // `base64` counts only at the end of the media type, and without a value.
      ("data:base64,WA==", unnamed, "WA=="), ("data:;base64;charset=x,WA==", "text/plain;charset=x", "WA=="),
      ("data:text/html;base64=1,WA==", "text/html;base64=1", "WA=="),
    ])
  func reads(text: String, type: String, body: String) throws {
    let url = try #require(DataURL(text))
    #expect(url.mediaType.description == type)
    #expect(String(decoding: url.body, as: UTF8.self) == body)
  }

  @Test(arguments: [
    "", "data", "data:", "data:text/html", "http://a/,b", "data:#,", "data:;base64,W", "data:;base64,WA=",
    "data:;base64,WA===", "data:;base64,W!==", "data:;base64,=", "data:;base64,W-A_", "data:;base64,W=A=",
  ])
  func refuses(text: String) {
    #expect(DataURL(text) == nil)
  }

  @Test func bytesOfAllKinds() throws {
    let bytes = (0...255).map { UInt8($0) }
    #expect(DataURL("data:application/octet-stream;base64,\(Base64.encode(bytes))")?.body == bytes)
    for count in 0..<9 {
      #expect(
        Base64.decodeForgiving(Base64.encode(Array(bytes[200..<200 + count])).utf8) == Array(bytes[200..<200 + count]))
    }
    var encoded: [UInt8] = []
    PercentCoding.encode(bytes, into: &encoded) { _ in true }
    #expect(DataURL("data:,\(String(decoding: encoded, as: UTF8.self))")?.body == bytes)
  }
}
