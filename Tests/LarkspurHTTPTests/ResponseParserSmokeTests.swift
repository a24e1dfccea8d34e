import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct ResponseParserSmokeTests {
  @Test func aResponseWithABody() throws {
    let input = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".utf8)
    var parser = ResponseParser()
    let begun = parser.begin(RequestContext())
    #expect(begun)
    var consumed = 0
    let head = try parser.next(in: input.span, consumed: &consumed)
    let body = try parser.next(in: input.span, consumed: &consumed)
    let end = try parser.next(in: input.span, consumed: &consumed)
    #expect([head, body, end] == [.head, .body(38..<43), .end(trailerBase: 43)])
  }
}
