import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import Testing

/// Revocation lists and stapled responses.
@Suite struct RevocationTests {
  let ca: TestCA
  let leaf: TestCertificate

  init() throws {
    ca = try TestCA()
    leaf = try ca.issue()
  }

  private func problem(
    stapled: [UInt8]? = nil, lists: [[UInt8]] = [], _ leaf: TestCertificate? = nil
  ) async throws -> TLSError.Problem? {
    var tls = TestServer.TLS(certificate: leaf ?? self.leaf)
    tls.stapledResponse = stapled
    var problems: Set<TLSError.Problem?> = []
    for version in [TestServer.TLS.Version.tls1_2, .tls1_3] {
      tls.versions = version...version
      let server = try TestServer(tls: tls)
      let client = try SecureClient(trusting: ca) { $0.revocationLists = lists }
      problems.insert(await client.get(from: server).problem)
    }
    #expect(problems.count == 1)
    return problems.first ?? nil
  }

  @Test func lists() async throws {
    let good = try ca.revocationList(revoking: []).der
    let bad = try ca.revocationList(revoking: [leaf]).der
    #expect(try await problem(lists: [good]) == nil)
    #expect(try await problem(lists: [bad]) == .revoked)
    #expect(try await problem(lists: [try TestCA().revocationList(revoking: []).der]) == .revocationUnknown)
    #expect(throws: TLSError.self) { try SecureClient(trusting: ca) { $0.revocationLists = [[1, 2, 3]] } }
  }

  @Test func stapledResponses() async throws {
    #expect(try await problem(stapled: try ca.ocspResponse(for: leaf, status: .good)) == nil)
    #expect(try await problem(stapled: try ca.ocspResponse(for: leaf, status: .revoked())) == .revoked)
    #expect(try await problem(stapled: try ca.ocspResponse(for: leaf, status: .unknown)) == .revocationUnknown)
    let other = try ca.issue()
    #expect(try await problem(stapled: try ca.ocspResponse(for: other, status: .good)) == .revocationUnknown)
    #expect(try await problem(stapled: [1, 2, 3]) == .revocationUnknown)
    let outdated = try ca.ocspResponse(for: leaf, status: .good, thisUpdate: -7200, nextUpdate: -3600)
    #expect(try await problem(stapled: outdated) == .revocationUnknown)
    // An authority of the same name, with another key.
    let forged = try TestCA()
    #expect(
      try await problem(stapled: try forged.ocspResponse(for: leaf, status: .good)) == .revocationUnknown)
  }

  /// CVE-2024-0853: a certificate that was revoked at the first connection is revoked at the second one, which has no
  /// session to resume.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func itStaysRevoked(version: TestServer.TLS.Version) async throws {
    var tls = TestServer.TLS(certificate: leaf)
    tls.stapledResponse = try ca.ocspResponse(for: leaf, status: .revoked())
    tls.versions = version...version
    let server = try TestServer(tls: tls)
    let client = try SecureClient(trusting: ca)
    for _ in 0..<2 { #expect(await client.get(from: server).problem == .revoked) }
  }

  @Test func mustStaple() async throws {
    var request = TestCertificate.Request()
    request.mustStaple = true
    let leaf = try ca.issue(request)
    #expect(try await problem(leaf) == .revocationUnknown)
    #expect(try await problem(stapled: try ca.ocspResponse(for: leaf, status: .good), leaf) == nil)
  }
}
