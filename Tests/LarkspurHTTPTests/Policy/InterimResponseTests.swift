import FuzzOracles
import LarkspurHTTP
import Testing

@Suite struct InterimResponseTests {
  @Test func eachInterimResponseIsReportedBeforeTheFinalOne() {
    let transcript = read(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nLink: </b.css>\r\n\r\n"
        + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    #expect(
      transcript.lines == [
        "interim 1.1 100 Continue",
        "interim 1.1 103 Early Hints",
        "  Link: </a.css>",
        "  Link: </b.css>",
        "head 1.1 200 OK, length(2), persistent",
        "  Content-Length: 2",
        "body hi",
        "end",
      ])
  }

  /// RFC 9110 15.2: a 1xx response ends with its head, whatever its fields say.
  @Test(arguments: ["Content-Length: 5", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Connection: close"])
  func theirFieldsDecideNothing(line: String) {
    let transcript = read("HTTP/1.1 102 X\r\n\(line)\r\n\r\nHTTP/1.1 204 X\r\n\r\n")
    #expect(transcript.interims.map(\.status) == [102])
    #expect(transcript.heads.map(\.status) == [204])
    #expect(transcript.heads.first?.isPersistent == true)
    #expect(transcript.error == nil)
  }

  /// The parser continues where the interim head ended, also if the next head is malformed.
  @Test func aBadHeadBehindOne() {
    let transcript = read("HTTP/1.1 100 Continue\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
    #expect(transcript.interims.count == 1)
    #expect(transcript.error == .notHTTP)
  }

  @Test func nothingOfItIsLeftInTheFinalHead() {
    let transcript = read("HTTP/1.0 103 Early\r\nA: b\r\n\r\nHTTP/1.1 204\r\n\r\n")
    #expect(transcript.lines == ["interim 1.0 103 Early", "  A: b", "head 1.1 204 , none, persistent", "end"])
  }

  /// The limit on interim responses counts anew for each request.
  @Test func theCountIsPerResponse() {
    let many = repeated("HTTP/1.1 100\r\n\r\n", 32) + "HTTP/1.1 204\r\n\r\n"
    let transcript = read(many + many, requests: [.get, .get], splits: .around([512, 544]))
    #expect(transcript.heads.count == 2)
    #expect(transcript.error == nil)
  }
}
