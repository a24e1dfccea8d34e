import Foundation
import LarkspurHTTP
import TestKit
import Testing

@Suite struct BasicAuthorizationTests {
  struct Cases: Decodable {
    var cases: [Case]
    var must_reject: [Refused]

    struct Case: Decodable {
      var user: String
      var password: String
      var charset: String
      var authorization: String
    }

    struct Refused: Decodable {
      var user: String
      var password: String
    }
  }

  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func corpus() throws {
    let all = try Corpora.decode(Cases.self, from: "auth/basic.json")
    #expect(all.cases.count == 9 && all.must_reject.count == 3)
    for one in all.cases {
      let credential = PasswordCredential(user: one.user, password: one.password)
      let value = BasicAuthorization.value(credential, charset: one.charset == "latin-1" ? .latin1 : .utf8)
      #expect(value == one.authorization, "\(one.user)")
    }
    for one in all.must_reject {
      #expect(BasicAuthorization.value(PasswordCredential(user: one.user, password: one.password)) == nil)
    }
  }

  @Test func controlCharactersInPasswords() {
    for scalar in ["\0", "\n", "\u{7f}", "\u{85}"] {
      #expect(BasicAuthorization.value(PasswordCredential(user: "u", password: "p\(scalar)")) == nil)
    }
    #expect(BasicAuthorization.value(PasswordCredential(user: "u", password: "語"), charset: .latin1) == nil)
  }

  /// Descriptions do not contain the password, so that no log prints it.
  @Test func noPasswordInDescriptions() {
    let credential = PasswordCredential(user: "u", password: "secret")
    var dumped = ""
    dump(AuthenticationAnswer(.basic(realm: "r"), credential), to: &dumped)
    for text in ["\(credential)", String(reflecting: [credential]), dumped] {
      #expect(text.contains("u") && !text.contains("secret"), "\(text)")
    }
  }
}
