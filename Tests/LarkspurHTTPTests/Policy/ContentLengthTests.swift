import FuzzOracles
import LarkspurHTTP
import Testing

/// `Content-Length` is one number in plain digits, possibly repeated. Everything else is an error: with a guess at the
/// end of a body, one response can become two.
@Suite struct ContentLengthTests {
  private func read(_ lines: String, body: String = "", sourceLocation: SourceLocation = #_sourceLocation) -> Transcript
  {
    LarkspurHTTPTests.read("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n\(body)", sourceLocation: sourceLocation)
  }

  @Test(arguments: [
    "Content-Length: 3", "CONTENT-LENGTH:3", "content-length: \t3 \t", "Content-Length: 003", "Content-Length: 3, 3",
    "Content-Length: 3,3 ,\t3", "Content-Length: 3\r\nX: y\r\nContent-Length: 3",
    "Content-Length: 3\r\nContent-Length: 3,3",
  ])
  func three(lines: String) {
    let transcript = read(lines, body: "abc")
    #expect(transcript.heads.first?.framing == .length(3))
    #expect(transcript.heads.first?.contentLength == 3)
    #expect(transcript.entries.dropFirst() == [.body(Array("abc".utf8)), .end(trailers: [])])
  }

  @Test func zeroIsNoBody() {
    let transcript = read("Content-Length: 0")
    #expect(transcript.heads.first?.framing == BodyFraming.none)
    #expect(transcript.heads.first?.contentLength == 0)
    #expect(transcript.entries.dropFirst() == [.end(trailers: [])])
  }

  @Test(arguments: [
    "", " ", "-3", "+3", "0x3", "3x", "x3", "3 3", "3.0", "3;", "\"3\"", "３", "three", ",", "3,", ",3", "3,,3", "3, x",
    "3e0",
    "1_000", "9223372036854775808", "18446744073709551616", "18446744073709551619", "99999999999999999999999999",
  ])
  func notANumber(value: String) {
    #expect(read("Content-Length: \(value)").error == .contentLengthInvalid)
    // Repetition does not make an invalid value valid.
    #expect(read("Content-Length: \(value)\r\nContent-Length: \(value)").error == .contentLengthInvalid)
    #expect(read("Content-Length: 3\r\nContent-Length: \(value)", body: "abc").error == .contentLengthInvalid)
  }

  @Test func theLargestNumber() {
    let transcript = read("Content-Length: 9223372036854775807", body: "abc")
    #expect(transcript.heads.first?.framing == .length(.max))
    #expect(transcript.error == .truncated(.body(missing: .max - 3)))
  }

  @Test(arguments: [
    "3, 4", "3\r\nContent-Length: 4", "4\r\nContent-Length: 3", "3, 3, 4", "3\r\nContent-Length: 3,4", "0, 3",
  ])
  func twoNumbers(value: String) {
    #expect(read("Content-Length: \(value)", body: "abc").error == .contentLengthConflicting)
  }

  /// Different spellings of one number conflict: a reader that takes 010 for octal would see eight bytes.
  @Test(arguments: ["010, 10", "10\r\nContent-Length: 010", "0, 00"]) func theSameNumberWrittenInTwoWays(value: String)
  {
    #expect(read("Content-Length: \(value)", body: "abc").error == .contentLengthConflicting)
  }

  /// The field is checked even where no body follows, because the server is broken all the same.
  @Test func whereNoBodyFollows() {
    #expect(
      LarkspurHTTPTests.read("HTTP/1.1 204 X\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\n").error
        == .contentLengthConflicting)
    #expect(
      LarkspurHTTPTests.read("HTTP/1.1 200 X\r\nContent-Length: x\r\n\r\n", requests: [.head]).error
        == .contentLengthInvalid)
  }

  @Test(arguments: ["Content-Length-X: 5", "X-Content-Length: 5", "Content_Length: 5"]) func otherFields(line: String) {
    #expect(read(line).heads.first?.framing == .untilClose)
  }
}
