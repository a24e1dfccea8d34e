import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTLS
import TestKit
import Testing

@testable import Larkspur

/// Compares Digest responses with vectors that other implementations computed.
@Suite struct DigestResponseTests {
  struct Vector: Decodable {
    var name: String
    var alg: String
    var userhash: Bool?
    var user: String
    var realm: String
    var pw: String
    var method: String
    var uri: String
    var nonce: String
    var nc: String
    var cnonce: String
    var qop: String
    var body: String?
    var response: String
    var username_hash: String?
  }

  static func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }

  static func bytes(_ hexadecimal: String) -> [UInt8] {
    let digits = Array(hexadecimal)
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
  }

  static func challenge(_ vector: Vector) throws -> DigestChallenge {
    var field = "Digest realm=\(quoted(vector.realm)), nonce=\(quoted(vector.nonce)), algorithm=\(vector.alg)"
    if !vector.qop.isEmpty { field += ", qop=\"\(vector.qop)\"" }
    if vector.userhash == true { field += ", userhash=true, charset=UTF-8" }
    return try #require(Challenge.read([field + ", opaque=\"o\\\"p\""]).first.flatMap(DigestChallenge.init))
  }

  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func corpus() throws {
    let vectors = try Corpora.decode([Vector].self, from: "auth/digest_vectors.json")
    #expect(vectors.count == 17)
    for vector in vectors {
      let body = vector.body.map(Self.bytes)
      let hashBody: AuthenticatedRequest.BodyHash? = body.map { BodyHashing.of(Data($0)) }
      let request = AuthenticatedRequest(
        method: vector.method, target: vector.uri, to: .origin, bodyHash: hashBody)
      let count = try #require(UInt32(vector.nc, radix: 16))
      let response = DigestResponse(
        to: try Self.challenge(vector), of: PasswordCredential(user: vector.user, password: vector.pw), for: request,
        nonceCount: count, clientNonce: vector.cnonce)
      let value = try #require(response.authorization(hash: messageHash))
      let words = try #require(Challenge.read([value]).first, "\(value)")
      let about: Comment = "\(vector.name): \(value)"
      #expect(words["response"] == vector.response, about)
      #expect(words["username"] == vector.username_hash ?? vector.user, about)
      #expect(words["realm"] == vector.realm && words["nonce"] == vector.nonce && words["uri"] == vector.uri, about)
      #expect(words["algorithm"] == vector.alg && words["opaque"] == "o\"p", about)
      #expect(words["qop"] == (vector.qop.isEmpty ? nil : vector.qop), about)
      #expect(words["nc"] == (vector.qop.isEmpty ? nil : vector.nc), about)
      #expect(words["userhash"] == (vector.userhash == true ? "true" : nil), about)
      // RFC 7616 3.4: the values of these parameters are not quoted.
      for word in ["qop", "nc", "algorithm", "userhash"] { #expect(!value.contains("\(word)=\""), about) }
    }
  }

  static func value(_ parameters: String, user: String = "u", body: AuthenticatedRequest.BodyHash? = nil) -> String? {
    let challenge = Challenge.read(["Digest realm=r, nonce=n" + parameters]).first.flatMap(DigestChallenge.init)
    guard let challenge else { return nil }
    let request = AuthenticatedRequest(method: "GET", target: "/", to: .origin, bodyHash: body)
    return DigestResponse(
      to: challenge, of: PasswordCredential(user: user, password: "p"), for: request, nonceCount: 1, clientNonce: "c"
    ).authorization(hash: messageHash)
  }

  /// A challenge without `qop` gets an answer with the parameters of RFC 2069 only, since old servers know no others.
  @Test func oldServers() throws {
    let value = try #require(Self.value(""))
    for word in ["qop=", "nc=", "cnonce=", "algorithm=", "opaque=", "userhash="] { #expect(!value.contains(word)) }
    // `MD5-sess` needs `cnonce` even without `qop`: the server computes the session key from it.
    #expect(Self.value(", algorithm=MD5-sess")?.contains("cnonce=\"c\"") == true)
  }

  /// A body that cannot be hashed makes `auth-int` impossible, but neither `auth` nor a challenge without `qop`.
  @Test func bodies() {
    #expect(Self.value(", qop=\"auth-int\"", body: { _ in nil }) == nil)
    #expect(Self.value(", qop=\"auth-int\"") != nil)
    #expect(Self.value(", qop=\"auth,auth-int\"", body: { _ in nil })?.contains("qop=auth,") == true)
    #expect(Self.value("", body: { _ in nil }) != nil)
  }

  @Test func userNames() {
    #expect(Self.value(", charset=UTF-8", user: "J ä%'")?.contains("username*=UTF-8''J%20%C3%A4%25%27, ") == true)
    #expect(Self.value("", user: "ä")?.contains("username=\"ä\"") == true)
    #expect(Self.value(", charset=UTF-8", user: "a\"\\")?.contains("username=\"a\\\"\\\\\"") == true)
    // A user name with a line break yields no answer, since it could inject a header field.
    #expect(Self.value("", user: "a\r\nX: y") == nil)
    #expect(Self.value(", userhash=true", user: "a\r\nX: y") == nil)
  }
}
