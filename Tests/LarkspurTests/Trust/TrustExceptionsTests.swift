import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests the failures that a program decides to ignore.
@Suite struct TrustExceptionsTests {
  private func trust(
    of request: TestCertificate.Request = .init(names: ["a.example"]), host: String = "a.example"
  ) throws -> SecTrust {
    let certificate = try #require(TLSCertificate(Data(try TestCA.selfSigned(request).certificateDER)))
    return try ServerTrust(host: host, chain: [certificate], roots: .only([]))
  }

  private func result(_ trust: SecTrust) -> SecTrustResultType {
    var result = SecTrustResultType.invalid
    SecTrustEvaluate(trust, &result)
    return result
  }

  private static func expired(_ request: TestCertificate.Request) -> TestCertificate.Request {
    var request = request
    (request.notBefore, request.notAfter) = (-7200, -3600)
    return request
  }

  /// The recipe for a server that is known by its certificate.
  @Test func aSelfSignedCertificate() throws {
    let trust = try trust()
    #expect(result(trust) == .recoverableTrustFailure)
    #expect(SecTrustSetExceptions(trust, SecTrustCopyExceptions(trust)))
    #expect(!trust.isTrusted)
    #expect(SecTrustEvaluateWithError(trust, nil) && trust.isTrusted && result(trust) == .proceed)
    var error: CFError?
    #expect(SecTrustEvaluateWithError(trust, &error) && error == nil)
    // Another evaluation finds no proved chain but the certificate itself.
    let evaluation = try trust.evaluate(host: nil)
    #expect(evaluation.result.isTrusted && evaluation.chain == trust.sentChain)
    #expect(!SecTrustSetExceptions(trust, nil))
    #expect(result(trust) == .recoverableTrustFailure)
  }

  /// All failures at the time of the call are ignored, and no others.
  @Test func everyFailure() throws {
    let trust = try trust(of: Self.expired(.init(names: ["b.example"])))
    let exceptions = try #require(SecTrustCopyExceptions(trust))
    #expect(SecTrustSetExceptions(trust, exceptions as CFData) && result(trust) == .proceed)
    let fewer =
      [
        { SecTrustSetVerifyDate($0, Date(timeIntervalSinceNow: -5400)) },
        { SecTrustSetPolicies($0, SecPolicyCreateSSL(true, "b.example")) },
      ] as [(SecTrust) -> OSStatus]
    for change in fewer {
      #expect(change(trust) == errSecSuccess)
      #expect(SecTrustSetExceptions(trust, SecTrustCopyExceptions(trust)) && result(trust) == .proceed)
    }
    // The certificate expires, or another host is wanted.
    SecTrustSetVerifyDate(trust, Date())
    #expect(result(trust) == .recoverableTrustFailure)
    SecTrustSetVerifyDate(trust, Date(timeIntervalSinceNow: -5400))
    #expect(result(trust) == .proceed)
    SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "c.example"))
    #expect(result(trust) == .recoverableTrustFailure)
    #expect(SecTrustSetExceptions(trust, exceptions) && result(trust) == .proceed)
  }

  @Test func aGoodChain() throws {
    let trust = try trust()
    SecTrustSetAnchorCertificates(trust, trust.sentChain)
    #expect(SecTrustSetExceptions(trust, SecTrustCopyExceptions(trust)) && result(trust) == .unspecified)
    SecTrustSetVerifyDate(trust, .distantFuture)
    #expect(result(trust) == .recoverableTrustFailure)
  }

  /// An authority that no root leads to, and an intermediate certificate that has expired.
  @Test func chains() throws {
    let ca = try TestCA()
    let issued = try ca.intermediate().issue(.init(names: ["a.example"]))
    let chain = try issued.chainDER.map { try #require(TLSCertificate(Data($0))) }
    let trust = try ServerTrust(host: "a.example", chain: chain, roots: .only([]))
    #expect(SecTrustSetExceptions(trust, SecTrustCopyExceptions(trust)) && result(trust) == .proceed)
    SecTrustSetVerifyDate(trust, .distantFuture)
    #expect(result(trust) == .recoverableTrustFailure)
  }

  @Test func otherCertificates() throws {
    let (one, other) = (try trust(), try trust())
    let exceptions = try #require(SecTrustCopyExceptions(one))
    #expect(!SecTrustSetExceptions(other, exceptions) && result(other) == .recoverableTrustFailure)
    for data in [Data(), Data("{}".utf8), Data(repeating: 0, count: 1000)] {
      #expect(SecTrustSetExceptions(one, exceptions) && !SecTrustSetExceptions(one, data))
      #expect(result(one) == .recoverableTrustFailure)
    }
  }

  @Test func failuresThatCannotBeIgnored() throws {
    let trust = try trust()
    SecTrustSetPolicies(trust, [])
    #expect(SecTrustCopyExceptions(trust) == nil && !SecTrustSetExceptions(trust, SecTrustCopyExceptions(trust)))
    SecTrustSetPolicies(trust, try #require(SecPolicyCreateRevocation(kSecRevocationRequirePositiveResponse)))
    #expect(SecTrustCopyExceptions(trust) == nil)
    var weak = TestCertificate.Request(names: ["a.example"])
    weak.key = .rsa(1024)
    #expect(SecTrustCopyExceptions(try self.trust(of: weak)) == nil)
  }

  @Test func networkFetches() throws {
    let trust = try trust()
    var isAllowed: DarwinBoolean = true
    #expect(SecTrustGetNetworkFetchAllowed(trust, &isAllowed) == errSecSuccess && !isAllowed.boolValue)
    #expect(SecTrustSetNetworkFetchAllowed(trust, true) == errSecSuccess)
    #expect(SecTrustGetNetworkFetchAllowed(trust, &isAllowed) == errSecSuccess && isAllowed.boolValue)
  }
}
