import Foundation
import Testing

@testable import AFNetworking

/// Tests the encoding of parameters as a query.
@Suite struct QueryStringTests {
  struct Case: @unchecked Sendable, CustomTestStringConvertible {
    var parameters: [String: Any]
    var query: String

    init(_ parameters: [String: Any], _ query: String) {
      self.parameters = parameters
      self.query = query
    }

    var testDescription: String { query }
  }

  static let cases = [
    Case(["key": "value", "key1": "value&"], "key=value&key1=value%26"),
    Case([:], ""),
    Case(["b": 1, "a": 2, "B": 3], "B=3&a=2&b=1"),
    Case(["a": ["c": 1, "b": 2]], "a%5Bb%5D=2&a%5Bc%5D=1"),
    Case(["a": ["b": ["c": "d"]]], "a%5Bb%5D%5Bc%5D=d"),
    Case(["a": [2, 1]], "a%5B%5D=2&a%5B%5D=1"),
    Case(["a": [["b": 1], ["b": 2]]], "a%5B%5D%5Bb%5D=1&a%5B%5D%5Bb%5D=2"),
    Case(["a": [[1], [2]]], "a%5B%5D%5B%5D=1&a%5B%5D%5B%5D=2"),
    Case(["a": Set(["y", "x"])], "a=x&a=y"),
    Case(["a": [String](), "b": [String: Int]()], ""),
    Case(["a": NSNull(), "b": ""], "a&b="),
    Case(["a": Int?.none as Any, "b": Int?.some(1) as Any], "a&b=1"),
    Case(["yes": true, "no": false], "no=0&yes=1"),
    Case(
      ["double": 1.0, "half": 0.5, "float": Float(3), "big": UInt64.max],
      "big=18446744073709551615&double=1&float=3&half=0.5"),
    Case(["number": NSNumber(value: 42), "decimal": Decimal(string: "1.50") as Any], "decimal=1.5&number=42"),
    Case(["url": URL(string: "http://a/?b=c") as Any], "url=http%3A//a/?b%3Dc"),
    Case(["date": Date(timeIntervalSince1970: 0)], "date=1970-01-01%2000%3A00%3A00%20%2B0000"),
    Case(["a": NSDictionary(dictionary: ["b": NSArray(array: ["c"])])], "a%5Bb%5D%5B%5D=c"),
    Case(["a": NSSet(array: ["c", "b"])], "a=b&a=c"),
    Case(["k\u{20}y": "\u{e9}"], "k%20y=%C3%A9"),
  ]

  @Test(arguments: cases)
  func parametersAsAQuery(_ row: Case) { #expect(AFQueryStringFromParameters(row.parameters) == row.query) }

  /// Numbers as Foundation's JSON parser returns them.
  @Test func largeNumbersOfFoundations() {
    let number = NSNumber(value: Int64(1) << 60)
    #expect(QueryString.text(ofValue: number) == "1152921504606846976")
    #expect(QueryString.text(ofValue: NSNumber(value: UInt64.max)) == "18446744073709551615")
    #expect(QueryString.text(ofValue: NSNumber(value: 2.5)) == "2.5")
  }

  @Test func keysOfAnyKindAreDescribed() {
    #expect(AFQueryStringFromParameters([1: "one", 2: [3: "three"]]) == "1=one&2%5B3%5D=three")
  }

  @Test func anArrayWithoutAKeyHasNone() {
    #expect(QueryString.text(of: ["a", "b"]) == "%5B%5D=a&%5B%5D=b")
  }

  @Test func whatAQueryReservesIsEscaped() {
    #expect(
      AFPercentEscapedStringFromString(":#[]@!$&'()*+,;=?/") == "%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D?/")
    let letters = "ABCXYZabcxyz0189-._~"
    #expect(AFPercentEscapedStringFromString(letters) == letters)
    #expect(AFPercentEscapedStringFromString(" \"<>\\^`{|}%\n") == "%20%22%3C%3E%5C%5E%60%7B%7C%7D%25%0A")
    #expect(AFPercentEscapedStringFromString("") == "")
  }

  @Test func whatIsEscapedAlreadyIsEscapedAgain() {
    #expect(AFPercentEscapedStringFromString("%20%21") == "%2520%2521")
  }

  @Test func lettersThatAreManyScalarsStayWhole() {
    let people = "\u{1F474}\u{1F3FF}\u{1F477}\u{1F3FB}\u{1F46E}\u{1F3FD}"
    let text = "!" + String(repeating: people, count: 20)
    #expect(AFPercentEscapedStringFromString(text).removingPercentEncoding == text)
    #expect(AFPercentEscapedStringFromString("\u{1F474}\u{1F3FF}") == "%F0%9F%91%B4%F0%9F%8F%BF")
  }

  @Test func aLongStringIsEscapedAsAWhole() {
    let text = String(repeating: "\u{20AC}&", count: 10_000)
    #expect(AFPercentEscapedStringFromString(text) == String(repeating: "%E2%82%AC%26", count: 10_000))
  }
}
