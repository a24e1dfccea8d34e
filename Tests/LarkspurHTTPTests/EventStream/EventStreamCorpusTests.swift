import Foundation
import FuzzOracles
import LarkspurHTTP
import TestKit
import Testing

/// Event streams of the web-platform-tests and of a contract test suite for clients.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct EventStreamCorpusTests {
  struct Case: Decodable {
    var name: String
    var input_hex: String
    var expected: [Event]

    struct Event: Decodable {
      var data: String
      var type: String?
      var lastEventId: String?
      /// What `retry` has to be, which may be nothing; or `nil` if the case does not say.
      var retry: UInt64??

      init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        data = try values.decode(String.self, forKey: .data)
        type = try values.decodeIfPresent(String.self, forKey: .type)
        lastEventId = try values.decodeIfPresent(String.self, forKey: .lastEventId)
        if values.contains(.retry) { retry = .some(try values.decodeIfPresent(UInt64.self, forKey: .retry)) }
      }

      enum Key: CodingKey { case data, type, lastEventId, retry }
    }
  }

  @Test func events() throws {
    let cases = try Corpora.decode([Case].self, from: "sse/cases.json")
    #expect(cases.count == 46)
    for row in cases {
      let stream = try bytes(hex: row.input_hex)
      let outcome = EventStreamParserTests.read(stream)
      let about = Comment(rawValue: "\(row.name): \(outcome)")
      #expect(EventStreamOutcome(of: Cuts.cycling(stream, sizes: [2])) == outcome, about)
      #expect(outcome.error == nil, about)
      #expect(outcome.events.map(\.data) == row.expected.map(\.data), about)
      for (event, expected) in zip(outcome.events, row.expected) {
        #expect(event.type == expected.type ?? "message", about)
        if let id = expected.lastEventId { #expect(event.lastEventID == id, about) }
        if let retry = expected.retry { #expect(event.retryMilliseconds == retry, about) }
      }
    }
  }
}
