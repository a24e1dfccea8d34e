import Foundation
import LarkspurHTTP
import TestKit
import Testing

/// Public test suites for cookies.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct CookieCorpusTests {
  // MARK: http-state

  struct Case: Decodable {
    struct Pair: Decodable {
      var name: String
      var value: String
    }

    var test: String
    var received: [String]
    var sent: [Pair]
    var sentTo: String?

    enum CodingKeys: String, CodingKey {
      case test, received, sent
      case sentTo = "sent-to"
    }
  }

  /// Cookies without a name: what is sent for them. The suite was written for RFC 6265, which drops such cookies. RFC
  /// 6265bis keeps them, as browsers do and as the Web Platform Tests require.
  static let nameless: [String: String] = [
    "0004": "foo",
    "0024": "foo",
    "0026": "foo",
    "0028": "foo",
    "CHROMIUM0010": "\"BLA\\\"HHH\"",
    "CHROMIUM0012": "ABC",
    "MOZILLA0012": "test=\"fubar! = foo; five",
    "MOZILLA0014": "six",
    "MOZILLA0016": "eight",
    "NAME0028": "a",
    "NAME0032": "\"foo\\\"bar",
  ]

  /// The suite does not expect these cases to pass. The values are the results by RFC 6265bis.
  static let disabled: [String: String?] = [
    // A control character invalidates the whole cookie.
    "DISABLED_CHROMIUM0022": nil
  ]

  @Test func httpState() throws {
    let cases = try Corpora.decode([Case].self, from: "http-state/parser.json")
    #expect(cases.count == 107)
    var special: Set<String> = []
    for row in cases {
      var visit = CookieVisit()
      let number = row.test.lowercased()
      let host = "http://home.example.org:8888"
      for field in row.received { visit.set(field, at: "\(host)/cookie-parser?\(number)") }
      var target = row.sentTo ?? "/cookie-parser-result?\(number)"
      if target.hasPrefix("/") { target = host + target }
      let pairs = row.sent.map { "\($0.name)=\($0.value)" }
      var expected = pairs.isEmpty ? nil : pairs.joined(separator: "; ")
      if let ours = Self.disabled[row.test] ?? Self.nameless[row.test].map(Optional.some) {
        special.insert(row.test)
        #expect(ours != expected, "\(row.test) is no exception")
        expected = ours
      }
      let sent = visit.field(for: target)
      #expect(sent == expected, "\(row.test): \(row.received)")
    }
    #expect(special == Set(Self.disabled.keys).union(Self.nameless.keys))
  }

  struct DateCase: Decodable {
    var test: String
    var expected: String?
  }

  @Test(arguments: ["examples", "bsd-examples"]) func httpStateDates(name: String) throws {
    let text = String(decoding: try Corpora.data("http-state/dates/\(name).json"), as: UTF8.self)
    // One of the files begins with a license.
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("//") }
    let cases = try JSONDecoder().decode([DateCase].self, from: Data(lines.joined(separator: "\n").utf8))
    #expect(cases.count > 10)
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(secondsFromGMT: 0)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    for row in cases {
      let time = CookieDate.parse(row.test)
      let text = time.map { format.string(from: Date(timeIntervalSinceReferenceDate: $0.seconds)) }
      #expect(text == row.expected, "\(row.test)")
    }
  }

  // MARK: Web Platform Tests

  struct Strings: Decodable {
    var strings: [String]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      strings = try (try? container.decode([String].self)) ?? [container.decode(String.self)]
    }
  }

  struct PlatformCase: Decodable {
    var cookie: Strings
    var expected: String
    var name: String
    var location: String?
  }

  /// Cases that cannot occur here, with the reason and with the result that this library gives.
  static let inapplicable: [String: (reason: String, ours: String)] = [
    "Set cookie but ignore value after LF": (
      "a line feed ends the field line; one inside a field that is handed over is a control character", ""
    )
  ]

  @Test func platformTests() throws {
    let files = try Corpora.decode([String: [PlatformCase]].self, from: "wpt/cookies/cases.json")
    #expect(files.values.reduce(0) { $0 + $1.count } == 153)
    var inapplicable = 0
    for (file, cases) in files {
      let isSecure = file.hasSuffix(".https.html")
      let url = "\(isSecure ? "https" : "http")://web-platform.test:8000/\(file)"
      for row in cases {
        var visit = CookieVisit()
        // Cookies on a redirect are set by a script in another folder.
        let setter = row.location == nil ? url : "http://web-platform.test:8000/cookies/resources/redirect"
        for field in row.cookie.strings { visit.set(field, at: setter) }
        let sent = visit.field(for: row.location.map { "http://web-platform.test:8000\($0)" } ?? url)
        var expected = row.expected
        if let exception = Self.inapplicable[row.name] {
          inapplicable += 1
          expected = exception.ours
        }
        #expect(sent ?? "" == expected, "\(file): \(row.name)")
      }
    }
    #expect(inapplicable == Self.inapplicable.count)
  }

  // MARK: The public suffix list

  /// Reads lines such as `checkPublicSuffix('a.example', 'example');`, with `null` for no suffix.
  @Test func publicSuffixes() throws {
    let list = try Data(contentsOf: URL(filePath: "/usr/share/publicsuffix/public_suffix_list.dat"))
    let table = PublicSuffixTable(list: Array(list))
    let text = String(decoding: try Corpora.data("publicsuffix/test_psl.txt"), as: UTF8.self)
    var checks = 0
    for line in text.split(separator: "\n") where line.hasPrefix("checkPublicSuffix(") {
      let parts = line.dropFirst("checkPublicSuffix(".count).prefix { $0 != ")" }.split(separator: ", ")
      let arguments = parts.map { $0 == "null" ? nil : String($0.dropFirst().dropLast()) }
      try #require(arguments.count == 2, "\(line)")
      checks += 1
      guard let name = arguments[0].map({ $0.precomposedStringWithCanonicalMapping.lowercased() }) else { continue }
      let ascii = try #require(Punycode.asciiName(name))
      let domain = table.registrableDomain(of: ascii).map(String.init)
      #expect(domain == arguments[1].flatMap { Punycode.asciiName($0) }, "\(line)")
      #expect(table.isPublicSuffix(ascii) == (domain == nil), "\(line)")
    }
    #expect(checks == 78)
  }
}
