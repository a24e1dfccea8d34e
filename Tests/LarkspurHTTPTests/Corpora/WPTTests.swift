import Foundation
import FuzzOracles
import LarkspurHTTP
import TestKit
import Testing

/// Behavior on which browsers agree, from the web-platform-tests.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct WPTTests {
  struct StatusLine: Decodable {
    var status_line: String
    var expected: Expected?

    struct Expected: Decodable {
      var status: Int
      var reason: String

      init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        status = try list.decode(Int.self)
        reason = try list.decode(String.self)
      }
    }
  }

  @Test func statusLines() throws {
    let rows = try Corpora.decode([StatusLine].self, from: "wpt/h1_status_code.json")
    #expect(rows.count == 15)
    for row in rows {
      let transcript = read("\(row.status_line)\r\nheader: value\r\n\r\nbody")
      let about = Comment(rawValue: "\(row.status_line): \(transcript.lines)")
      if case .refused(let error) = Deviation.of(.wptStatusCodes, row.status_line)?.ours {
        #expect(transcript.error == error && row.expected != nil, about)
      } else if let expected = row.expected {
        #expect(transcript.heads.first?.status == expected.status, about)
        #expect(transcript.heads.first?.reason == expected.reason, about)
        #expect(transcript.body == Array("body".utf8), about)
        #expect(transcript.error == nil, about)
      } else {
        #expect(transcript.error == .statusInvalid, about)
      }
    }
  }

  struct MustFail: Decodable {
    var kind: String
    var input: String
  }

  @Test func mustFail() throws {
    let rows = try Corpora.decode([MustFail].self, from: "wpt/h1_must_fail.json")
    #expect(rows.count == 12)
    for row in rows {
      let transcript = read(row.input)
      #expect(transcript.entries.count == 1 && transcript.error != nil, "\(row.input): \(transcript.lines)")
    }
    // The rows have bare LFs, which are errors by themselves. With CRLF, the rows have to fail as well.
    for row in rows where row.kind != "NUL in header" {
      let input = row.input.replacing("\r\n", with: "\n").replacing("\n", with: "\r\n")
      let transcript = read(input)
      #expect(transcript.entries.count == 1 && transcript.error != nil, "\(input): \(transcript.lines)")
    }
  }

  struct ContentLength: Decodable {
    var input: String
    /// The length of the body that is read, or `nil` for a network error.
    var output: Int?
  }

  @Test func contentLengths() throws {
    let rows = try Corpora.decode([ContentLength].self, from: "wpt/content-lengths.json")
    #expect(rows.count == 31)
    for row in rows {
      let transcript = read("HTTP/1.1 200 OK\r\n\(row.input)\r\n\r\n\(repeated("x", 42))")
      let about = Comment(rawValue: "\(row.input): \(transcript.lines)")
      if case .refused(let error) = Deviation.of(.wptContentLengths, row.input)?.ours {
        #expect(transcript.entries == [.failed(error)] && row.output != nil, about)
      } else if let output = row.output {
        #expect(transcript.body.count == output, about)
        #expect(transcript.endCount == 1, about)
        #expect(transcript.error == (output == 42 ? nil : .unsolicitedBytes), about)
      } else {
        #expect(transcript.entries.count == 1 && transcript.error != nil, about)
      }
    }
  }
}
