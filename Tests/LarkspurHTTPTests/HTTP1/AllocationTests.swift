import CAllocations
import LarkspurBytes
import LarkspurHTTP
import Testing

/// After a warm-up, no response costs an allocation. The counter belongs to the thread, and no test here suspends,
/// so that tests which run in parallel do not count.
@Suite(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc")) struct AllocationTests {
  struct Load: CustomTestStringConvertible {
    var testDescription: String
    var response: String
    var request = RequestContext.get
    /// Number of bytes that arrive at a time; 0 for all at once.
    var pieceBytes = 0
  }

  static let head = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\n"
  static let thirty = (1...29).map { "X-Field-\($0): the value of field number \($0)\r\n" }.joined()
  static let folded = "X-Folded: one\r\n two\r\n\tthree\r\n"

  static let loads: [Load] = [
    Load(testDescription: "length", response: head + "Content-Length: 5\r\n\r\nhello"),
    Load(testDescription: "thirty fields", response: head + thirty + "Content-Length: 0\r\n\r\n"),
    Load(testDescription: "folded", response: head + folded + "Content-Length: 0\r\n\r\n"),
    Load(
      testDescription: "chunked, extensions, trailers",
      response: head
        + "Transfer-Encoding: chunked\r\n\r\n5;a=\"b\";c\r\nhello\r\n6\r\n world\r\n0\r\nDigest: x\r\nOther: y\r\n\r\n"),
    Load(testDescription: "interim", response: "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n\(head)Content-Length: 0\r\n\r\n"),
    Load(testDescription: "HEAD", response: head + "Content-Length: 5\r\n\r\n", request: .head),
    Load(testDescription: "in pieces", response: head + thirty + "Content-Length: 5\r\n\r\nhello", pieceBytes: 100),
    Load(
      testDescription: "byte by byte",
      response: head + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0\r\nA: b\r\n\r\n",
      pieceBytes: 1),
  ]

  /// Reads one response.
  ///
  /// - Returns: Number of bytes in the body, or `nil` if the response was not read as expected.
  private func parse(_ bytes: [UInt8], _ load: Load, _ parser: inout ResponseParser) -> Int? {
    guard parser.start(load.request) else { return nil }
    let step = load.pieceBytes == 0 ? bytes.count : load.pieceBytes
    var consumed = 0
    var bodyBytes = 0
    var available = 0
    while available < bytes.count {
      available = min(available + step, bytes.count)
      do {
        events: while true {
          switch try parser.next(in: bytes.span.extracting(0..<available), consumed: &consumed) {
          case .needMore: break events
          case .interim, .head: break
          case .body(let range): bodyBytes += range.count
          case .end: return available == bytes.count ? bodyBytes : nil
          }
        }
      } catch {
        return nil
      }
    }
    return nil
  }

  @Test(arguments: loads) func noneAfterWarmUp(load: Load) {
    let bytes = Array(load.response.utf8)
    var parser = ResponseParser()
    let bodyBytes = parse(bytes, load, &parser)
    #expect(bodyBytes != nil)
    var isSame = true
    let before = larkspur_allocations()
    for _ in 0..<1000 { isSame = isSame && parse(bytes, load, &parser) == bodyBytes }
    let allocations = larkspur_allocations() - before
    #expect(isSame)
    #expect(allocations == 0)
  }

  /// The counter counts allocations; otherwise a count of zero would prove nothing.
  @Test func whatAllocatesIsCounted() {
    let before = larkspur_allocations()
    let array = [UInt8](repeating: 1, count: Int.random(in: 1000...2000))
    #expect(larkspur_allocations() > before)
    #expect(array.count >= 1000)
  }
}
