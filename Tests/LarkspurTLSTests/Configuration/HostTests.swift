import LarkspurTLS
import LarkspurTestServer
import Testing

/// The hosts that a certificate covers, and the hosts that an issuer excludes.
@Suite struct HostTests {
  /// Verifies a chain whose leaf has `names` and `addresses` for a host.
  ///
  /// - Returns: The problem, or `nil` for a trusted chain.
  private func problem(
    _ names: [[UInt8]], addresses: [String] = [], for host: String,
    _ change: (inout TestCertificate.Request) -> Void = { _ in }
  ) throws -> TLSError.Problem? {
    let root = try TestCA()
    let middle = try root.intermediate(.ecP256, change)
    var request = TestCertificate.Request(names: [], ipAddresses: addresses)
    request.alternativeNames += names.map { .dns($0) }
    return try middle.issue(request).problem(for: host, roots: [root.rootCertificateDER])
  }

  @Test(arguments: [
    // A wildcard matches any label that is allowed in a host name.
    ("*.test.example", "a_b.test.example", true), ("*.test.example", "_a.test.example", true),
    ("*.my_app.test.example", "x.my_app.test.example", true), ("*.test.example", "a-.test.example", true),
    ("*.test.example", "-a.test.example", true), ("*.test.example", "a--b.test.example", true),
    ("*.test.example", "1.test.example", true), ("*.test.example", "xn--bcher-kva.test.example", true),
    ("*.TEST.Example", "A.test.EXAMPLE", true), ("*.test.example", "a.test.example.", true),
    ("*.xn--bcher-kva.example", "a.xn--bcher-kva.example", true), ("*.1.example", "a.1.example", true),
    // A wildcard matches only one label, only the first one, and not directly below the top level.
    ("*.test.example", "a.b.test.example", false), ("*.test.example", "test.example", false),
    ("*.example", "test.example", false), ("*.xn--p1ai", "test.xn--p1ai", false), ("*", "test", false),
    ("*.*.example", "a.b.example", false), ("a.*.example", "a.b.example", false), ("*.", "a.", false),
    ("*..example", "a.example", false), ("*.test.example.", "a.test.example", false),
    ("a*.test.example", "ab.test.example", false), ("*a.test.example", "ba.test.example", false),
    ("xn--*.test.example", "xn--a.test.example", false), ("**.test.example", "a.test.example", false),
    // Names without a wildcard.
    ("a_b.test.example", "a_b.test.example", true), ("A-.test.example", "a-.TEST.example", true),
    ("localhost", "localhost", true), ("a.test.example.", "a.test.example", false),
    (".test.example", "a.test.example", false), ("test.example", "a.test.example", false),
    ("a.test.example\0.evil.example", "a.test.example", false), ("\0a.test.example", "a.test.example", false),
    ("*.test.example\0", "a.test.example", false), ("\u{212a}.test.example", "k.test.example", false),
    ("*.0.0.1", "127.0.0.1", false), ("127.0.0.1", "127.0.0.1", false), ("::1", "::1", false),
  ])
  func names(name: String, host: String, isFor: Bool) throws {
    #expect(try problem([Array(name.utf8)], for: host) == (isFor ? nil : .wrongHost), "\(name) for \(host)")
  }

  @Test func severalNames() throws {
    let names = ["b.example", "*.c.example", "a.example"].map { Array($0.utf8) }
    for host in ["a.example", "b.example", "x_y.c.example"] { #expect(try problem(names, for: host) == nil) }
    #expect(try problem(names, for: "c.example") == .wrongHost)
    #expect(try problem([], for: "a.example") == .wrongHost)
  }

  @Test func addresses() throws {
    #expect(try problem([], addresses: ["127.0.0.1", "::1"], for: "127.0.0.1") == nil)
    #expect(try problem([], addresses: ["127.0.0.1", "::1"], for: "0:0::1") == nil)
    #expect(try problem([], addresses: ["127.0.0.1"], for: "127.0.0.2") == .wrongHost)
    #expect(try problem([], addresses: ["127.0.0.1"], for: "::1") == .wrongHost)
    #expect(try problem([], addresses: ["127.0.0.1"], for: "localhost") == .wrongHost)
  }

  /// A wrong host is reported before an expired date, so that accepting expired certificates does not mean accepting
  /// wrong hosts.
  @Test func theHostComesBeforeDates() throws {
    let root = try TestCA()
    var request = TestCertificate.Request(names: ["a.example"])
    request.notAfter = -60
    let leaf = try root.issue(request)
    #expect(try leaf.problem(for: "a.example", roots: [root.rootCertificateDER]) == .expired)
    #expect(try leaf.problem(for: "b.example", roots: [root.rootCertificateDER]) == .wrongHost)
  }

  /// RFC 5280 4.2.1.10: an excluded subtree applies to the requested host, not only to the wildcard that covers the
  /// host.
  @Test(arguments: [
    ("bad.good.test", "bad.good.test", false), ("BAD.Good.test", "bad.good.test", false),
    ("bad.good.test", "good-bad.good.test", true), ("bad.good.test", "fine.good.test", true),
    ("x.bad.good.test", "bad.good.test", true), ("ad.good.test", "bad.good.test", true),
    ("good.test", "fine.good.test", false), (".good.test", "fine.good.test", false), ("", "fine.good.test", false),
    ("other.test", "fine.good.test", true),
  ])
  func excluded(subtree: String, host: String, isTrusted: Bool) throws {
    let expected = isTrusted ? nil : TLSError.Problem.certificateInvalid
    let wildcard = [Array("*.good.test".utf8)]
    #expect(try problem(wildcard, for: host) { $0.nameConstraints = .init(excluded: [.dns(subtree)]) } == expected)
    // The excluded subtree is now inside a permitted one.
    let both = TestCertificate.Request.NameConstraints(permitted: [.dns("test")], excluded: [.dns(subtree)])
    #expect(try problem(wildcard, for: host) { $0.nameConstraints = both } == expected)
  }

  /// Name constraints of the root apply, too.
  @Test func excludedByTheRoot() throws {
    var request = TestCertificate.Request.authority("Narrow")
    request.nameConstraints = .init(excluded: [.dns("bad.good.test")])
    let root = try TestCA(request)
    let leaf = try root.intermediate().issue(.init(names: ["*.good.test"]))
    let roots = [root.rootCertificateDER]
    #expect(try leaf.problem(for: "bad.good.test", roots: roots) == .certificateInvalid)
    #expect(try leaf.problem(for: "fine.good.test", roots: roots) == nil)
  }
}

extension TestCertificate {
  /// Verifies this certificate's chain at the present time, with the given roots.
  ///
  /// - Returns: The problem, or `nil` for a trusted chain.
  func problem(for host: String, roots: [[UInt8]]) throws -> TLSError.Problem? {
    let chain = try chainDER.map { try #require(Certificate.read($0)?.first) }
    let trusted = try roots.map { try #require(Certificate.read($0)?.first) }
    let name = try #require(ServerName(host: host))
    // The certificate is valid since one hour before its creation.
    let date = chain[0].notBefore + 3600
    return try Trust.verifying(chain, for: name, roots: .only(trusted), date: date).result.error?.problem
  }
}
