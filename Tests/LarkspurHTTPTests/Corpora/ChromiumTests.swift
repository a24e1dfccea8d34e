import Foundation
import FuzzOracles
import LarkspurHTTP
import TestKit
import Testing

/// Rows of Chromium's tests of response headers. The rows have LF instead of CRLF, and lack the empty line.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct ChromiumTests {
  struct Row: Decodable {
    var headers: String
    var expected: [String]

    /// The head as sent on the wire.
    var response: String {
      let lines = headers.unicodeScalars.map { $0 == "\n" ? "\r\n" : String($0) }.joined()
      return lines.hasSuffix("\r\n") ? "\(lines)\r\n" : "\(lines)\r\n\r\n"
    }
  }

  struct Tables: Decodable {
    var content_length_tests: [Row]
    var keepalive_tests: [Row]
    var enumerate_header_tests: [Row]
  }

  private static func tables() throws -> Tables {
    try Corpora.decode(Tables.self, from: "chromium-net/response_headers.json")
  }

  @Test func contentLengths() throws {
    let rows = try Self.tables().content_length_tests
    #expect(rows.count == 17)
    for row in rows {
      let transcript = read(row.response, requests: [.head])
      let about = Comment(rawValue: "\(row.headers): \(transcript.lines)")
      if case .refused(let error) = Deviation.of(.chromiumContentLengths, row.headers)?.ours {
        #expect(transcript.entries == [.failed(error)] && row.expected == ["-1"], about)
      } else {
        #expect(transcript.heads.map { "\($0.contentLength ?? -1)" } == row.expected, about)
        #expect(transcript.error == nil, about)
      }
    }
  }

  @Test func keepAlive() throws {
    let rows = try Self.tables().keepalive_tests
    #expect(rows.count == 29)
    for row in rows {
      // As a response to HEAD, so that the fields alone decide.
      let transcript = read(row.response, requests: [.head])
      let about = Comment(rawValue: "\(row.headers): \(transcript.lines)")
      let isPersistent = transcript.heads.map { "\($0.isPersistent)" }
      switch Deviation.of(.chromiumKeepAlive, row.headers)?.ours {
      case .refused(let error): #expect(transcript.entries == [.failed(error)], about)
      case .accepted: #expect(transcript.error == nil, about)
      case .closing: #expect(isPersistent == ["false"] && row.expected == ["true"], about)
      case .persistent: #expect(isPersistent == ["true"] && row.expected == ["false"], about)
      case nil: #expect(isPersistent == row.expected, about)
      }
    }
  }

  @Test func enumeratedHeaders() throws {
    let rows = try Self.tables().enumerate_header_tests
    #expect(rows.count == 5)
    for row in rows {
      let transcript = read(row.response, requests: [.head])
      let fields = transcript.heads.first?.fields.map { "\($0.name): \($0.value)\n" }.joined()
      #expect(fields.map { [$0] } == row.expected, "\(row.headers): \(transcript.lines)")
      #expect(transcript.error == nil)
    }
  }
}
