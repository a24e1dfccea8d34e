import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests that trust code written for Darwin compiles unchanged and works: Core Foundation's names and the functions of
/// the Security framework.
@Suite(.timeLimit(.minutes(1))) struct DarwinTrustTests {
  let ca: TestCA
  let root: SecCertificate
  let leaf: SecCertificate

  init() throws {
    ca = try TestCA()
    root = try #require(SecCertificateCreateWithData(nil, Data(ca.rootCertificateDER) as CFData))
    let issued = try ca.issue(.init(names: ["a.example", "b.example"]))
    leaf = try #require(SecCertificateCreateWithData(kCFAllocatorDefault, Data(issued.certificateDER) as CFData))
  }

  /// Makes a trust of `leaf` with `root` as its only anchor.
  private func trust(_ policies: CFTypeRef?) throws -> SecTrust {
    var trust: SecTrust?
    #expect(SecTrustCreateWithCertificates([leaf] as CFArray, policies, &trust) == errSecSuccess)
    let made = try #require(trust)
    SecTrustSetAnchorCertificates(made, [root] as CFArray)
    return made
  }

  private func result(_ trust: SecTrust) -> SecTrustResultType {
    var result = SecTrustResultType.otherError
    #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess)
    return result
  }

  @Test func anchorsOnlyWithoutAnchorsTrustNothing() throws {
    let trust = try ServerTrust(
      host: "a.example", chain: [leaf], roots: .only([root]))
    #expect(SecTrustEvaluateWithError(trust, nil))
    SecTrustSetAnchorCertificatesOnly(trust, true)
    #expect(!SecTrustEvaluateWithError(trust, nil))
    SecTrustSetAnchorCertificates(trust, [root])
    #expect(SecTrustEvaluateWithError(trust, nil))
  }

  // MARK: - Core Foundation's names

  @Test func namesBridge() throws {
    let (data, host): (Data, String?) = (Data([1, 2]), "a.example")
    #expect((data as CFData) as Data == data)
    #expect((host as CFString?) as String? == host)
    let mixed = [root, leaf] as CFArray
    #expect((mixed as? [SecCertificate]) == [root, leaf])
    #expect((["key": 1] as CFDictionary)["key"] as? Int == 1)
    #expect((true as CFBoolean).boolValue && (3 as CFNumber) == 3)
    let index: CFIndex = mixed.count
    #expect(index == 2 && kCFAllocatorDefault == nil)
    let error: CFError = NSError(domain: "d", code: 7, userInfo: [NSLocalizedDescriptionKey: "words"])
    #expect(CFErrorGetCode(error) == 7 && CFErrorGetDomain(error) as String == "d")
    #expect(CFErrorCopyDescription(error) as String == "words")
  }

  /// `SecCertificateCreateWithData` accepts one certificate in DER only: no PEM, no second certificate, no trailing
  /// bytes.
  @Test func certificatesAreDER() throws {
    let der = SecCertificateCopyData(leaf)
    let pem = Data(
      "-----BEGIN CERTIFICATE-----\n\(der.base64EncodedString(options: .lineLength64Characters))\n-----END CERTIFICATE-----\n"
        .utf8)
    // Larkspur's own initializer accepts PEM.
    #expect(TLSCertificate(pem) == leaf)
    for data in [pem, der + [0], der + Data("\n".utf8), der + der, der.dropLast(), Data()] {
      #expect(SecCertificateCreateWithData(nil, data as CFData) == nil)
      #expect(SecCertificateCreateWithData(nil, data) == nil)
    }
    // A slice of `Data` whose indices do not start at 0.
    #expect(SecCertificateCreateWithData(nil, ([0] + der).dropFirst() as CFData) == leaf)
  }

  @Test func keysOfTrusts() throws {
    let trust = try trust(nil)
    let key = try #require(SecTrustCopyPublicKey(trust))
    var error: Unmanaged<CFError>?
    let data = SecKeyCopyExternalRepresentation(key, &error)
    #expect(key == SecTrustCopyKey(trust) && data != nil && data == SecKeyCopyExternalRepresentation(key, nil))
    #expect(error == nil)
  }

  // MARK: - Creating a trust

  @Test func whatATrustIsMadeOf() throws {
    var trust: SecTrust?
    for certificates in [leaf, [leaf], [leaf, root], [leaf] as CFArray, leaf as CFTypeRef] as [Any] {
      #expect(SecTrustCreateWithCertificates(certificates, SecPolicyCreateBasicX509(), &trust) == errSecSuccess)
      let made = try #require(trust)
      // A trust is not trusted before its evaluation.
      #expect(result(made) == .invalid && !made.isTrusted)
      // The root is unknown.
      #expect(!SecTrustEvaluateWithError(made, nil) && result(made) == .recoverableTrustFailure)
    }
    for (certificates, policies) in [
      ([], nil), ("leaf", nil), ([leaf, "root"] as CFArray, nil), (leaf, "policy"), (leaf, []), ([] as CFArray, nil),
    ] as [(Any, Any?)] {
      #expect(SecTrustCreateWithCertificates(certificates, policies, &trust) == errSecParam)
      #expect(trust == nil)
    }
  }

  @Test func anchorsThatAreNone() throws {
    let trust = try trust(nil)
    #expect(SecTrustEvaluateWithError(trust, nil))
    #expect(SecTrustSetAnchorCertificates(trust, [root, "root"] as CFArray) == errSecParam)
    #expect(result(trust) == .invalid && !SecTrustEvaluateWithError(trust, nil))
    #expect(SecTrustSetAnchorCertificates(trust, [root] as CFArray) == errSecSuccess)
    #expect(SecTrustEvaluateWithError(trust, nil) && result(trust) == .unspecified)
  }

  // MARK: - Policies

  @Test func everyPolicyCounts() throws {
    let (a, b) = (SecPolicyCreateSSL(true, "a.example" as CFString), SecPolicyCreateSSL(true, "b.example" as CFString?))
    let other = SecPolicyCreateSSL(true, "c.example")
    for (policies, isGood) in [
      ([a], true), ([a, b], true), ([b, a], true), ([a, other], false), ([other, a], false), ([other], false),
      ([a, SecPolicyCreateBasicX509()], true), ([SecPolicyCreateBasicX509(), other], false),
      ([SecPolicyCreateSSL(true, nil), SecPolicyCreateSSL(false, "c.example")], true),
    ] {
      let trust = try trust(policies as CFArray)
      #expect(SecTrustEvaluateWithError(trust, nil) == isGood, "\(policies)")
      // The policies are set later, in each of the accepted forms.
      #expect(SecTrustSetPolicies(trust, SecPolicyCreateBasicX509()) == errSecSuccess)
      #expect(result(trust) == .invalid && SecTrustEvaluateWithError(trust, nil))
      #expect(SecTrustSetPolicies(trust, policies as CFArray) == errSecSuccess)
      #expect(SecTrustEvaluateWithError(trust, nil) == isGood, "\(policies)")
      #expect(SecTrustSetPolicies(trust, policies) == errSecSuccess)
      #expect(SecTrustEvaluateWithError(trust, nil) == isGood, "\(policies)")
    }
  }

  /// Invalid policies make the trust fail, in case that a program ignores the returned status.
  @Test func policiesThatAreNone() throws {
    let trust = try trust(SecPolicyCreateBasicX509() as CFTypeRef)
    #expect(SecTrustEvaluateWithError(trust, nil))
    for policies in [[], [] as CFArray, "policy", [SecPolicyCreateBasicX509(), 1]] as [Any] {
      #expect(SecTrustSetPolicies(trust, policies) == errSecParam)
      #expect(result(trust) == .invalid)
      #expect(!SecTrustEvaluateWithError(trust, nil) && result(trust) != .unspecified && !trust.isTrusted)
    }
    #expect(SecTrustSetPolicies(trust, SecPolicyCreateBasicX509()) == errSecSuccess)
    #expect(SecTrustEvaluateWithError(trust, nil))
  }

  @Test func revocationThatCannotBeLookedUp() throws {
    #expect(SecPolicyCreateRevocation(0) == nil && SecPolicyCreateRevocation(1 << 5) == nil)
    let host = SecPolicyCreateSSL(true, "a.example")
    for flags in 1..<CFOptionFlags(1 << 5) {
      let trust = try trust([host, try #require(SecPolicyCreateRevocation(flags))] as CFArray)
      let isGood = flags & kSecRevocationRequirePositiveResponse == 0
      var error: CFError?
      #expect(SecTrustEvaluateWithError(trust, &error) == isGood)
      #expect(error.map(CFErrorGetCode) == (isGood ? nil : CFIndex(errSecIncompleteCertRevocationCheck)))
    }
  }

  // MARK: - Results

  @Test func errorsHaveDarwinsCodes() throws {
    let trust = try trust(SecPolicyCreateSSL(true, "c.example" as CFString) as CFTypeRef)
    func code() -> OSStatus? {
      var error: CFError?
      var type = SecTrustResultType.invalid
      let isGood = SecTrustEvaluateWithError(trust, &error)
      #expect(isGood == (error == nil))
      #expect(SecTrustEvaluate(trust, &type) == errSecSuccess)
      #expect((type == .unspecified) == isGood && type == result(trust))
      if let error { #expect(error.domain == NSOSStatusErrorDomain && !error.localizedDescription.isEmpty) }
      return error.map { OSStatus($0.code) }
    }
    #expect(code() == errSecHostNameMismatch)
    SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "a.example"))
    #expect(code() == nil)
    SecTrustSetVerifyDate(trust, Date.distantFuture as CFDate)
    #expect(code() == errSecCertificateExpired)
    SecTrustSetVerifyDate(trust, Date.distantPast as CFDate)
    #expect(code() == errSecCertificateNotValidYet)
    SecTrustSetVerifyDate(trust, Date())
    #expect(code() == nil)
    SecTrustSetAnchorCertificates(trust, [] as CFArray)
    #expect(code() == errSecNotTrusted)
  }

  /// The closure runs once, on the queue, after the function has returned to its caller on that queue.
  @Test(arguments: ["a.example", "c.example"]) func onAQueue(host: String) async throws {
    let trust = try trust(SecPolicyCreateSSL(true, host as CFString) as CFTypeRef)
    let queue = DispatchQueue(label: "trust")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let (isTrusted, code, isOnQueue, isBehind) = await withCheckedContinuation { continuation in
      queue.async {
        let hasReturned = Mutex(false)
        let status = SecTrustEvaluateAsyncWithError(trust, queue) { evaluated, isTrusted, error in
          #expect(evaluated === trust && evaluated.isTrusted == isTrusted)
          continuation.resume(
            returning: (
              isTrusted, error?.code, DispatchQueue.getSpecific(key: key) == true, hasReturned.withLock { $0 }
            ))
        }
        #expect(status == errSecSuccess)
        hasReturned.withLock { $0 = true }
      }
    }
    #expect(isTrusted == (host == "a.example") && isOnQueue && isBehind)
    #expect(code == (isTrusted ? nil : Int(errSecHostNameMismatch)))
  }

  // MARK: - Challenges of a server

  /// A delegate that keeps the trust of a challenge.
  private final class Keeper: NSObject, URLSessionTaskDelegate {
    let kept = Mutex<SecTrust?>(nil)

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      kept.withLock { $0 = challenge.protectionSpace.serverTrust }
      completionHandler(.performDefaultHandling, nil)
    }
  }

  /// The session's revocation lists satisfy a revocation policy.
  @Test func revocationByLists() async throws {
    let server = try TestServer(tls: TestServer.TLS(certificate: try ca.issue()))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([root])
    configuration.tlsTrustSettings.revocationLists = [Data(try ca.revocationList().der)]
    let keeper = Keeper()
    let session = URLSession(configuration: configuration)
    _ = try await session.data(from: try #require(URL(string: server.url("/get"))), delegate: keeper)
    let trust = try #require(keeper.kept.withLock { $0 })
    #expect(result(trust) == .unspecified)
    let proof = kSecRevocationRequirePositiveResponse
    for (flags, isGood) in [
      (proof | kSecRevocationCRLMethod, true), (proof | kSecRevocationUseAnyAvailableMethod, true),
      (proof | kSecRevocationOCSPMethod, false), (proof, false), (kSecRevocationOCSPMethod, true),
    ] {
      SecTrustSetPolicies(trust, [try #require(SecPolicyCreateRevocation(flags))] as CFArray)
      #expect(SecTrustEvaluateWithError(trust, nil) == isGood, "\(flags)")
    }
  }
}
