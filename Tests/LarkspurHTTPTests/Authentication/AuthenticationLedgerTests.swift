import LarkspurHTTP
import Testing

@Suite struct AuthenticationLedgerTests {
  typealias Target = AuthenticationTarget

  static let credential = PasswordCredential(user: "u", password: "p")
  static let origin = Target(.origin, scheme: "http", host: "a.example", port: 80)

  /// Returns a ledger with a stand-in for the hash function: these tests check counts and nonces only.
  static func ledger() -> AuthenticationLedger { AuthenticationLedger { _, bytes in Array(bytes.prefix(4)) } }

  static func get(_ target: String, _ role: Target.Role = .origin) -> AuthenticatedRequest {
    AuthenticatedRequest(method: "GET", target: target, to: role)
  }

  static func answer(_ field: String, _ credential: PasswordCredential = credential) throws -> AuthenticationAnswer {
    AuthenticationAnswer(try #require(AuthenticationOffer.List([field]).offers.first), credential)
  }

  static func knowing(_ field: String, at path: String, of target: Target = origin) throws -> AuthenticationLedger {
    var ledger = Self.ledger()
    ledger.remember(try answer(field), for: get(path, target.role), to: target)
    return ledger
  }

  /// Returns the value of one parameter of a Digest field.
  static func parameter(_ name: String, in value: String?) -> String? {
    Challenge.read([value ?? ""]).first?[name]
  }

  // MARK: - Basic

  /// Basic credentials are sent unasked below the directory in which they were accepted (RFC 7617 2.2, with its
  /// examples).
  @Test(arguments: [
    ("/docs/", true), ("/docs/test.doc", true), ("/docs/?page=1", true), ("/docs/deeper/x", true), ("/other/", false),
    ("/", false), ("/docs", false), ("/docs/../other", false), ("/docs/%2E%2e/other", false), ("/docs/.%2E", false),
    ("/docs/..x", true), ("*", false),
  ])
  func basicPaths(path: String, isKnown: Bool) throws {
    var ledger = try Self.knowing("Basic realm=r", at: "/docs/index.html?a=/b/")
    let preemptive = ledger.preemptive(for: Self.get(path), to: Self.origin, clientNonce: "c")
    #expect((preemptive?.value == "Basic dTpw") == isKnown)
    #expect(isKnown || preemptive == nil)
  }

  @Test func theDeepestSpaceCounts() throws {
    var ledger = try Self.knowing("Basic realm=outer", at: "/")
    let inner = PasswordCredential(user: "inner", password: "p")
    ledger.remember(try Self.answer("Basic realm=inner", inner), for: Self.get("/in/x"), to: Self.origin)
    ledger.remember(try Self.answer("Basic realm=outer"), for: Self.get("/out"), to: Self.origin)
    func user(_ path: String) -> String? {
      ledger.preemptive(for: Self.get(path), to: Self.origin, clientNonce: "c")?.answer.credential.user
    }
    #expect(user("/in/y") == "inner")
    #expect(user("/in") == "u")
  }

  // MARK: - Credentials stay with their target

  /// Credentials of one target are never sent to another one: scheme, host, port and role have to be equal.
  @Test(arguments: [
    Target(.origin, scheme: "https", host: "a.example", port: 80),
    Target(.origin, scheme: "http", host: "b.example", port: 80),
    Target(.origin, scheme: "http", host: "a.example", port: 8080),
    Target(.origin, scheme: "http", host: "sub.a.example", port: 80),
    Target(.proxy, scheme: "http", host: "a.example", port: 80),
  ])
  func otherTargets(target: Target) throws {
    for field in ["Basic realm=r", "Digest realm=r, nonce=n"] {
      var ledger = try Self.knowing(field, at: "/")
      #expect(ledger.preemptive(for: Self.get("/", target.role), to: target, clientNonce: "c") == nil)
      ledger = try Self.knowing(field, at: "/", of: target)
      #expect(ledger.preemptive(for: Self.get("/"), to: Self.origin, clientNonce: "c") == nil)
      #expect(ledger.preemptive(for: Self.get("/", target.role), to: target, clientNonce: "c") != nil)
    }
  }

  @Test func hostsHaveNoCase() throws {
    var ledger = try Self.knowing(
      "Basic realm=r", at: "/", of: Target(.origin, scheme: "HTTP", host: "A.Example", port: 80))
    #expect(ledger.preemptive(for: Self.get("/"), to: Self.origin, clientNonce: "c") != nil)
  }

  /// Each proxy has its own nonce counts, even if two proxies give equal nonces.
  @Test func noncesOfTwoProxies() throws {
    var ledger = Self.ledger()
    let answer = try Self.answer("Digest realm=r, nonce=n, qop=auth")
    for host in ["one", "two"] {
      let proxy = Target(.proxy, scheme: "http", host: host, port: 3128)
      let value = ledger.authorization(answer, for: Self.get("http://x/", .proxy), to: proxy, clientNonce: "c")
      #expect(Self.parameter("nc", in: value) == "00000001")
    }
  }

  @Test func aProxyIsOneSpace() throws {
    let proxy = Target(.proxy, scheme: "http", host: "p", port: 3128)
    for field in ["Basic realm=r", "Digest realm=r, nonce=n, domain=\"/only\""] {
      var ledger = try Self.knowing(field, at: "http://x.example/a/", of: proxy)
      for target in ["http://y.example/", "z.example:443", "*"] {
        #expect(ledger.preemptive(for: Self.get(target, .proxy), to: proxy, clientNonce: "c") != nil)
      }
    }
  }

  // MARK: - Digest

  @Test func noncesAreCounted() throws {
    var ledger = Self.ledger()
    let answer = try Self.answer("Digest realm=r, nonce=n, qop=auth")
    let first = ledger.authorization(answer, for: Self.get("/"), to: Self.origin, clientNonce: "c1")
    #expect(Self.parameter("nc", in: first) == "00000001")
    // A second task received the same nonce.
    let second = ledger.authorization(answer, for: Self.get("/"), to: Self.origin, clientNonce: "c2")
    #expect(Self.parameter("nc", in: second) == "00000002" && Self.parameter("cnonce", in: second) == "c2")
    ledger.remember(answer, for: Self.get("/"), to: Self.origin)
    for count in 3...20 {
      let value = ledger.preemptive(for: Self.get("/x"), to: Self.origin, clientNonce: "c")?.value
      #expect(Self.parameter("nc", in: value).flatMap { Int($0, radix: 16) } == count)
    }
  }

  @Test func nextNonce() throws {
    var ledger = Self.ledger()
    let answer = try Self.answer("Digest realm=r, nonce=n, qop=auth, algorithm=MD5-sess")
    _ = ledger.authorization(answer, for: Self.get("/"), to: Self.origin, clientNonce: "first")
    ledger.remember(answer, for: Self.get("/"), to: Self.origin, info: ["qop=auth, nextnonce=\"m\""])
    let value = ledger.preemptive(for: Self.get("/"), to: Self.origin, clientNonce: "second")?.value
    #expect(Self.parameter("nonce", in: value) == "m" && Self.parameter("nc", in: value) == "00000001")
    // The session key is derived from the first nonces.
    #expect(Self.parameter("cnonce", in: value) == "first")
  }

  @Test(arguments: [
    (nil, "/anything", true), ("", "/anything", true), ("/a /b/c", "/a/x", true), ("/a /b/c", "/b/c?d", true),
    ("/a /b/c", "/b/", false), ("http://a.example/a", "/a/x", true), ("http://a.example", "/x", true),
    ("http://A.Example:80/a", "/a", true), ("http://b.example/a", "/a", false), ("https://a.example/a", "/a", false),
    ("http://a.example:81/a", "/a", false), ("//a.example/a", "/a", false), ("a", "/a", false), ("http://", "/", false),
    ("/a", "/a/../b", false), ("/a[1]|%20", "/a%5B1%5D%7C%20/x", true), ("/ü", "/%C3%BC", true),
    ("http://a.example/a[%5B", "/a%5B%5B", true), ("/a%20", "/a%2520", false),
  ])
  func domains(domain: String?, path: String, isKnown: Bool) throws {
    let parameter = domain.map { ", domain=\"\($0)\"" } ?? ""
    var ledger = try Self.knowing("Digest realm=r, nonce=n\(parameter)", at: "/first")
    #expect((ledger.preemptive(for: Self.get(path), to: Self.origin, clientNonce: "c") != nil) == isKnown)
  }

  /// The digest's URI is the path for an origin, although the request line for a proxy holds the whole URI.
  @Test(arguments: [
    ("http://a.example/x?y", "/x?y"), ("http://a.example", "/"), ("http://a.example?y", "/?y"), ("/x", "/x"),
    ("/http://x/y", "/http://x/y"), ("*", "*"),
  ])
  func originForm(target: String, uri: String) throws {
    var ledger = Self.ledger()
    let answer = try Self.answer("Digest realm=r, nonce=n")
    let toOrigin = ledger.authorization(answer, for: Self.get(target), to: Self.origin, clientNonce: "c")
    #expect(Self.parameter("uri", in: toOrigin) == uri)
    let proxy = Target(.proxy, scheme: "http", host: "p", port: 3128)
    let toProxy = ledger.authorization(answer, for: Self.get(target, .proxy), to: proxy, clientNonce: "c")
    #expect(Self.parameter("uri", in: toProxy) == target)
  }

  @Test func whatCannotBeWritten() throws {
    var ledger = AuthenticationLedger { hash, _ in hash == .md5 ? nil : [1] }
    for (field, user) in [
      ("Digest realm=r, nonce=n", "u"), ("Basic realm=r", "a:b"), ("Digest realm=r, nonce=n", "a\n"),
    ] {
      let answer = try Self.answer(field, PasswordCredential(user: user, password: "p"))
      #expect(ledger.authorization(answer, for: Self.get("/"), to: Self.origin, clientNonce: "c") == nil)
      ledger.remember(answer, for: Self.get("/"), to: Self.origin)
      #expect(ledger.preemptive(for: Self.get("/"), to: Self.origin, clientNonce: "c") == nil)
    }
    let answer = try Self.answer("Digest realm=r, nonce=n, algorithm=SHA-256")
    #expect(ledger.authorization(answer, for: Self.get("/"), to: Self.origin, clientNonce: "") == nil)
    #expect(ledger.authorization(answer, for: Self.get("/"), to: Self.origin, clientNonce: "c") != nil)
  }

  // MARK: - Forgetting

  @Test func refusedAnswers() throws {
    for field in ["Basic realm=r", "Digest realm=r, nonce=n"] {
      var ledger = try Self.knowing(field, at: "/")
      // Refusals in another realm or of another credential do not affect the known credential.
      ledger.forget(try Self.answer("Basic realm=other"), of: Self.origin)
      ledger.forget(try Self.answer(field, PasswordCredential(user: "u", password: "old")), of: Self.origin)
      #expect(ledger.preemptive(for: Self.get("/"), to: Self.origin, clientNonce: "c") != nil)
      ledger.forget(try Self.answer(field), of: Self.origin)
      #expect(ledger.preemptive(for: Self.get("/"), to: Self.origin, clientNonce: "c") == nil)
      #expect(ledger.isEmpty)
    }
  }

  @Test func anotherUsersCredentialsStayWithTheirPaths() throws {
    var ledger = try Self.knowing("Basic realm=r", at: "/a/x")
    let other = PasswordCredential(user: "v", password: "p")
    ledger.remember(try Self.answer("Basic realm=r", other), for: Self.get("/b/x"), to: Self.origin)
    #expect(ledger.preemptive(for: Self.get("/a/x"), to: Self.origin, clientNonce: "c") == nil)
    #expect(
      ledger.preemptive(for: Self.get("/b/x"), to: Self.origin, clientNonce: "c")?.answer.credential == other)
  }

  @Test func knownAndWithdrawn() throws {
    var ledger = try Self.knowing("Basic realm=r", at: "/")
    let other = Target(.proxy, scheme: "http", host: "p", port: 3128)
    ledger.remember(try Self.answer("Basic realm=r"), for: Self.get("/", .proxy), to: other)
    #expect(ledger.known.count == 2)
    #expect(ledger.known.allSatisfy { $0.space.realm == "r" && $0.credential == Self.credential })
    ledger.forget(ledger.known.filter { $0.target == Self.origin })
    #expect(ledger.preemptive(for: Self.get("/"), to: Self.origin, clientNonce: "c") == nil)
    #expect(ledger.preemptive(for: Self.get("/", .proxy), to: other, clientNonce: "c") != nil)
    ledger.removeAll()
    #expect(ledger.isEmpty && ledger.known.isEmpty)
  }

  // MARK: - Limits

  static func isKnown(_ ledger: AuthenticationLedger, _ path: String, _ target: Target = origin) -> Bool {
    var ledger = ledger
    return ledger.preemptive(for: get(path), to: target, clientNonce: "c") != nil
  }

  @Test func manyTargets() throws {
    var ledger = Self.ledger()
    let answer = try Self.answer("Basic realm=r")
    let targets = (0...AuthenticationLedger.targetsMax).map {
      Target(.origin, scheme: "http", host: "\($0).example", port: 80)
    }
    for target in targets.dropLast() { ledger.remember(answer, for: Self.get("/"), to: target) }
    #expect(Self.isKnown(ledger, "/", targets[0]))
    ledger.remember(answer, for: Self.get("/"), to: targets[targets.count - 1])
    #expect(!Self.isKnown(ledger, "/", targets[0]))
    #expect(Self.isKnown(ledger, "/", targets[1]) && Self.isKnown(ledger, "/", targets[targets.count - 1]))
  }

  @Test func manySpaces() throws {
    var ledger = Self.ledger()
    for number in 0...AuthenticationLedger.spacesMax {
      if number == AuthenticationLedger.spacesMax { #expect(Self.isKnown(ledger, "/0/")) }
      ledger.remember(try Self.answer("Basic realm=\(number)"), for: Self.get("/\(number)/"), to: Self.origin)
    }
    #expect(!Self.isKnown(ledger, "/0/") && Self.isKnown(ledger, "/1/"))
  }

  @Test func manyDirectories() throws {
    var ledger = Self.ledger()
    let answer = try Self.answer("Basic realm=r")
    for number in 0...AuthenticationLedger.directoriesMax {
      if number == AuthenticationLedger.directoriesMax { #expect(Self.isKnown(ledger, "/0/")) }
      ledger.remember(answer, for: Self.get("/\(number)/"), to: Self.origin)
    }
    #expect(!Self.isKnown(ledger, "/0/") && Self.isKnown(ledger, "/1/"))
    // A directory below a known one needs no entry of its own.
    for number in 0...AuthenticationLedger.directoriesMax {
      ledger.remember(answer, for: Self.get("/1/\(number)/"), to: Self.origin)
    }
    #expect(Self.isKnown(ledger, "/2/"))
  }

  @Test func manyNonces() throws {
    var ledger = Self.ledger()
    func count(_ nonce: Int) throws -> String? {
      let answer = try Self.answer("Digest realm=r, nonce=\(nonce), qop=auth")
      return Self.parameter(
        "nc", in: ledger.authorization(answer, for: Self.get("/"), to: Self.origin, clientNonce: "c"))
    }
    for nonce in 1...AuthenticationLedger.noncesMax { _ = try count(nonce) }
    #expect(try count(1) == "00000002")
    // One nonce more, and the oldest is forgotten.
    #expect(try count(0) == "00000001")
    #expect(try count(1) == "00000001")
    #expect(try count(AuthenticationLedger.noncesMax) == "00000002")
  }
}
