import Foundation
import LarkspurCoding
import TestKit
import Testing

/// Bodies in every coding: whole, cut off, damaged, and in layers.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct CodingCorpusTests {
  struct Case: Decodable {
    var name: String
    var content_encoding: String
    var body_hex: String
    var expect: String
    var plain_hex: String?

    /// The values of the case's field lines; some cases have several.
    var fieldValues: [String] {
      content_encoding.components(separatedBy: "\r\n").map { line in
        line.hasPrefix("Content-Encoding: ") ? String(line.dropFirst("Content-Encoding: ".count)) : line
      }
    }
  }

  struct Cases: Decodable {
    var plain_hex: String
    var cases: [Case]
  }

  /// The outcome that this decoder has for the cases in which the suite allows several.
  private static let chosen: [String: String] = [
    "gzip trailing zeros": "plain", "gzip trailing garbage": "plain", "gzip empty body": "empty",
    "unknown coding": "raw",
  ]

  @Test func cases() throws {
    let suite = try Corpora.decode(Cases.self, from: "codings/cases.json")
    #expect(suite.cases.count == 24)
    for row in suite.cases {
      let body = bytes(hex: row.body_hex)
      let codings: ContentCodings
      do throws(CodingError) {
        codings = try ContentCodings(fieldValues: row.fieldValues)
      } catch {
        #expect(row.expect == "error" && error == .peerSentTooManyLayers, "\(row.name)")
        continue
      }
      let whole = Decoding([body[...]], codings.layers)
      let byByte = Decoding(single(body), codings.layers, room: 7)
      #expect(byByte.agrees(with: whole), "\(row.name)")
      for cut in body.indices where cut < 100 {
        let inTwo = Decoding([body[..<cut], body[cut...]], codings.layers)
        #expect(inTwo.agrees(with: whole), "\(row.name) cut at \(cut)")
      }
      switch (row.expect, Self.chosen[row.name]) {
      case ("ok", nil):
        #expect(whole.output == bytes(hex: try #require(row.plain_hex)), "\(row.name)")
        #expect(whole.error == nil, "\(row.name)")
      case ("error", nil): #expect(whole.error != nil, "\(row.name)")
      case ("ok-or-error", "plain"):
        #expect(whole.output == bytes(hex: suite.plain_hex) && whole.error == nil, "\(row.name)")
      case ("ok-or-error", "empty"): #expect(whole.output == [] && whole.error == nil, "\(row.name)")
      case ("raw-or-error", "raw"):
        #expect(codings.hasUnknown && codings.isEmpty)
        #expect(whole.output == body && whole.error == nil, "\(row.name)")
      case let other: Issue.record("\(row.name): \(other)")
      }
    }
  }
}
