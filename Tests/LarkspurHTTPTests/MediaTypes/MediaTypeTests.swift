import Foundation
import LarkspurHTTP
import TestKit
import Testing

@Suite struct MediaTypeTests {
  /// A row of the suite; comments stand between the rows.
  enum Row: Decodable {
    case comment(String)
    case row(input: String, output: String?, encoding: String?)

    private enum Key: String, CodingKey { case input, output, encoding }

    init(from decoder: any Decoder) throws {
      if let comment = try? decoder.singleValueContainer().decode(String.self) {
        self = .comment(comment)
        return
      }
      let fields = try decoder.container(keyedBy: Key.self)
      self = .row(
        input: try fields.decode(String.self, forKey: .input), output: try fields.decode(String?.self, forKey: .output),
        encoding: try fields.decodeIfPresent(String.self, forKey: .encoding))
    }
  }

  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func webPlatformTests() throws {
    var count = 0
    for case .row(let input, let output, let encoding) in try Corpora.decode([Row].self, from: "wpt/mime-types.json") {
      let type = MediaType(parsing: input)
      #expect(type?.description == output, "\(input.debugDescription)")
      if let encoding { #expect(type?.charset == encoding.lowercased(), "\(input.debugDescription)") }
      count += 1
    }
    #expect(count == 71)
  }

  /// Parameters past the limit are ignored, and the type itself stays valid.
  @Test func manyParameters() throws {
    func parsed(_ count: Int) throws -> [String] {
      let text = "text/html" + (0..<count).map { ";x\($0)=y" }.joined()
      return try #require(MediaType(parsing: text)).parameters.map(\.name)
    }
    #expect(try parsed(MediaType.parametersMax).count == MediaType.parametersMax)
    #expect(try parsed(MediaType.parametersMax + 1) == parsed(MediaType.parametersMax))
  }

  struct ContentTypes: Decodable {
    var contentType: [String]
    var encoding: String?
    var mimeType: String
  }

  /// Several field lines, and lines with commas, give one type.
  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func severalFields() throws {
    let rows = try Corpora.decode([ContentTypes].self, from: "wpt/content-types.json")
    #expect(rows.count == 20)
    for row in rows {
      for values in [row.contentType, [row.contentType.joined(separator: ", ")]] {
        let type = MediaType(fieldValues: values)
        #expect(type?.description == row.mimeType, "\(row.contentType)")
        #expect(type?.charset == row.encoding?.lowercased(), "\(row.contentType)")
      }
    }
  }

  struct HeaderRow: Decodable {
    var headers: String
    var expected: [String]

    var values: [String] {
      headers.split(separator: "\n").compactMap { line in
        line.hasPrefix("Content-type: ") ? String(line.dropFirst("Content-type: ".count)) : nil
      }
    }
  }

  struct Tables: Decodable {
    var mimetype_tests: [HeaderRow]
  }

  /// Our results where Chromium is laxer than the standard that it follows otherwise.
  static let laxer: [String: (essence: String?, charset: String?)] = [
    "text/html (html)": (nil, nil), "text/html ; charset= \"utf-8\" ;": ("text/html", "\"utf-8\""),
  ]

  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func chromium() throws {
    let rows = try Corpora.decode(Tables.self, from: "chromium-net/response_headers.json").mimetype_tests
    #expect(rows.count == 20)
    for row in rows {
      let type = MediaType(fieldValues: row.values)
      if let ours = Self.laxer[row.values.joined(separator: ", ")] {
        #expect(type?.essence == ours.essence && type?.charset == ours.charset, "\(row.headers)")
        #expect(row.expected[0] == "text/html")
      } else {
        #expect(type?.essence ?? "" == row.expected[0], "\(row.headers)")
        #expect(type?.charset ?? "" == row.expected[2], "\(row.headers)")
      }
    }
  }

  @Test func parts() throws {
    let type = try #require(MediaType(parsing: "Application/Vnd.X+JSON; Charset=UTF-8; q=\"a;b\""))
    #expect(type.type == "application" && type.subtype == "vnd.x+json" && type.essence == "application/vnd.x+json")
    #expect(type.charset == "utf-8" && type["charset"] == "UTF-8" && type["q"] == "a;b" && type["none"] == nil)
    #expect(MediaType(parsing: "text/plain;charset=\"\"")?.charset == nil)
    #expect(MediaType(fieldValues: []) == nil)
    #expect(MediaType(fieldValues: ["nonsense", "*/*"]) == nil)
  }
}
