import LarkspurHTTP
import Testing

@Suite struct AuthenticationOfferTests {
  static func digest(_ parameters: String) -> String { "Digest realm=\"r\", nonce=\"n\"" + parameters }

  static func names(_ fields: String...) -> [String] {
    AuthenticationOffer.List(fields).offers.map { offer in
      switch offer {
      case .basic(let realm): "basic \(realm ?? "-")"
      case .digest(let challenge): "digest \(challenge.algorithm.text ?? "-")"
      }
    }
  }

  @Test func theStrongestComesFirst() {
    let names = Self.names(
      "Basic realm=a", Self.digest(""), Self.digest(", algorithm=SHA-256"), "Basic realm=b",
      Self.digest(", algorithm=SHA-512-256-sess"), Self.digest(", algorithm=md5-SESS"))
    #expect(
      names == [
        "digest SHA-256", "digest SHA-512-256-sess", "digest -", "digest md5-SESS", "basic a", "basic b",
      ])
  }

  /// Challenges that cannot be answered are left out; others of the same response stay.
  @Test(arguments: [
    "Negotiate", "NTLM TlRMTVNTUAAC", "Bearer realm=\"x\"", "Digest realm=\"r\"", "Digest nonce=\"n\"", "Digest",
    digest(", algorithm=SHA-1"), digest(", algorithm=SHA-512"), digest(", algorithm=-sess"), digest(", qop=\"x, y\""),
  ])
  func whatCannotBeAnswered(field: String) {
    let alone = AuthenticationOffer.List([field])
    #expect(alone.offers.isEmpty && alone.unsupported.count == 1)
    let list = AuthenticationOffer.List(["\(field), Basic realm=x"])
    #expect(list.offers == [.basic(realm: "x")])
    #expect(list.unsupported == alone.unsupported)
  }

  @Test(
    arguments: [
      ("", nil), (", qop=\"\"", nil), (", qop=auth", .authentication), (", qop=\"AUTH-INT, Auth\"", .authentication),
      (", qop=\"auth-int\"", .integrity), (", qop=\"x,auth-int\"", .integrity),
    ] as [(String, DigestChallenge.Quality?)])
  func qualities(parameters: String, quality: DigestChallenge.Quality?) throws {
    let offer = try #require(AuthenticationOffer.List([Self.digest(parameters)]).offers.first)
    guard case .digest(let challenge) = offer else { return #expect(Bool(false)) }
    #expect(challenge.quality == quality)
  }

  @Test func flags() throws {
    let field = Self.digest(
      ", stale=TRUE, userhash=True, charset=\"utf-8\", opaque=o, domain=\"/a  http://h/b\", algorithm=\"MD5\"")
    let challenge = try #require(Challenge.read([field]).first.flatMap(DigestChallenge.init))
    #expect(challenge.isStale && challenge.hashesUser && challenge.isUTF8)
    #expect(challenge.opaque == "o" && challenge.domain == ["/a", "http://h/b"] && challenge.algorithm.text == "MD5")
    let plain = try #require(Challenge.read([Self.digest(", stale=yes")]).first.flatMap(DigestChallenge.init))
    #expect(!plain.isStale && !plain.hashesUser && !plain.isUTF8 && plain.opaque == nil && plain.domain.isEmpty)
  }

  @Test(arguments: [0, 1]) func longDomains(more: Int) throws {
    let count = DigestChallenge.domainMax + more
    let domain = (1...count).map { "/\($0)" }.joined(separator: " ")
    let challenge = try #require(
      Challenge.read([Self.digest(", domain=\"\(domain)\"")]).first.flatMap(DigestChallenge.init))
    #expect(challenge.domain.count == DigestChallenge.domainMax)
  }
}
