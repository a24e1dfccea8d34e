import Foundation
import FuzzOracles
import LarkspurHTTP
import TestKit
import Testing

/// The responses of Go's net/http tests, and its rows of heads that are accepted or refused.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct GoNetHTTPTests {
  struct Response: Decodable {
    var comment: String
    var raw_hex: String
    var status: String
    var code: Int
    var proto: String
    var content_length: String
    var close: String?
    var transfer_encoding: String?
    var request_method: String
    var headers: [String: [String]]
    var body_hex: String
  }

  @Test func responses() throws {
    let cases = try Corpora.decode([Response].self, from: "go-net-http/responses.json")
    #expect(cases.count == 23)
    for test in cases {
      let request: RequestContext = test.request_method == "HEAD" ? .head : .get
      let transcript = read(try bytes(hex: test.raw_hex), requests: [request])
      let about = Comment(rawValue: "\(test.comment): \(transcript.lines)")
      let deviation = Deviation.of(.goResponses, test.comment)
      if case .refused(let error) = deviation?.ours {
        #expect(transcript.entries == [.failed(error)], about)
        continue
      }
      let head = try #require(transcript.heads.first, about)
      #expect(head.status == test.code, about)
      #expect("\(head.status) \(head.reason)".trimmingSuffix(" ") == test.status.trimmingSuffix(" "), about)
      #expect("HTTP/1.\(head.minorVersion)" == test.proto, about)
      #expect(transcript.body == (try bytes(hex: test.body_hex)), about)
      if let close = test.close {
        #expect(head.isPersistent == (deviation?.ours == .closing ? false : close == "false"), about)
      }
      // -1 means unknown. A 204 has length zero without a field.
      if test.content_length == "-1" {
        #expect(head.contentLength == nil || test.transfer_encoding != nil, about)
      } else if test.code != 204 {
        #expect(head.contentLength == Int(test.content_length), about)
      }
      #expect((test.transfer_encoding != nil) == (head.fields.contains { $0.value == "chunked" }), about)
      for (name, values) in test.headers {
        let ours = head.fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        // The corpus lacks the quoted half of one value.
        #expect(ours == values || name == "Www-Authenticate", about)
      }
      // Go reads no further than the response; this parser reports the bytes behind it.
      switch transcript.error {
      case nil: break
      case .unsolicitedBytes: #expect(transcript.endCount == 1, about)
      default: Issue.record(about)
      }
    }
  }

  struct Row: Decodable {
    var name: String
    var input: String
    var expect: String
  }

  @Test func acceptedAndRefused() throws {
    let rows = try Corpora.decode([Row].self, from: "go-net-http/response_errors.json")
    #expect(rows.count == 82)
    for row in rows {
      let transcript = read(row.input)
      let about = Comment(rawValue: "\(row.name): \(transcript.lines)")
      if case .refused(let error) = Deviation.of(.goErrors, row.name)?.ours {
        #expect(transcript.error == error && row.expect == "ok", about)
      } else if row.expect == "ok" {
        #expect(transcript.heads.count == 1, about)
        // These rows are about heads and chunk sizes; most bodies have another length than announced.
        switch transcript.error {
        case nil, .unsolicitedBytes, .truncated(.body), .chunkEndMissing: break
        default: Issue.record(about)
        }
      } else {
        #expect(transcript.error != nil && transcript.error != .unsolicitedBytes, about)
      }
    }
  }
}

extension String {
  fileprivate func trimmingSuffix(_ suffix: Character) -> Substring {
    last == suffix ? dropLast() : self[...]
  }
}
