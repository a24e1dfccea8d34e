import AFNetworking
import LarkspurTestServer
import Testing

@testable import AFNetworking

/// Tests credentials and the trust of servers.
@Suite struct ManagerChallengeTests {
  private func secret(_ fixture: ManagerFixture) async -> BlockResult {
    await outcome { fixture.manager.get("secret", parameters: nil, success: $0, failure: $1) }
  }

  private static let credential = URLCredential(user: "user", password: "password", persistence: .none)

  @Test func aHandlerGivesACredential() async throws {
    let fixture = try ManagerFixture()
    fixture.manager.setAuthenticationChallengeHandler { _, _, challenge, _ in
      if challenge.protectionSpace.realm == "Fake Realm", challenge.previousFailureCount == 0 { return Self.credential }
      return NSNumber(value: URLSession.AuthChallengeDisposition.performDefaultHandling.rawValue)
    }
    let outcome = await secret(fixture)
    #expect(outcome.error == nil && outcome["in"] == "1" || outcome["in"] == "true")
  }

  @Test func aHandlerAnswersLater() async throws {
    let fixture = try ManagerFixture()
    fixture.manager.setAuthenticationChallengeHandler { _, _, _, completion in
      let later = Later { completion(.useCredential, Self.credential) }
      DispatchQueue.global().async { later.run() }
      return nil
    }
    #expect(await secret(fixture).error == nil)
  }

  private struct Later: @unchecked Sendable {
    let run: () -> Void
  }

  @Test func aHandlerGivesAnError() async throws {
    let fixture = try ManagerFixture()
    fixture.manager.setAuthenticationChallengeHandler { _, _, _, _ in NSError(domain: "Mine", code: 5) }
    let error = await secret(fixture).error
    #expect(error?.domain == "Mine" && error?.code == 5)
  }

  @Test(arguments: [
    (URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, NSURLErrorCancelled),
    (.rejectProtectionSpace, NSURLErrorBadServerResponse), (.performDefaultHandling, NSURLErrorBadServerResponse),
  ])
  func aHandlerGivesADisposition(disposition: URLSession.AuthChallengeDisposition, code: Int) async throws {
    let fixture = try ManagerFixture()
    fixture.manager.setAuthenticationChallengeHandler { _, _, _, _ in NSNumber(value: disposition.rawValue) }
    #expect(await secret(fixture).error?.code == code)
    fixture.manager.setAuthenticationChallengeHandler { _, _, _, _ in disposition }
    #expect(await secret(fixture).error?.code == code)
  }

  /// A handler that returns an object of a wrong type fails the task. AFNetworking raises an exception.
  @Test func aHandlerTalksNonsense() async throws {
    let fixture = try ManagerFixture()
    fixture.manager.setAuthenticationChallengeHandler { _, _, _, _ in "yes" }
    let error = await secret(fixture).error
    #expect(error?.code == NSURLErrorUserAuthenticationRequired)
    #expect(error?.localizedDescription.contains("authentication challenge handler must return") == true)
  }

  @Test func blocksOfEarlierVersions() async throws {
    let fixture = try ManagerFixture()
    fixture.manager.setTaskDidReceiveAuthenticationChallengeBlock { _, _, challenge, credential in
      guard challenge.previousFailureCount == 0 else { return .performDefaultHandling }
      credential?.pointee = Self.credential
      return .useCredential
    }
    #expect(await secret(fixture).error == nil)
  }

  // MARK: - Trust

  private let ca: TestCA
  private let leaf: TestCertificate

  init() throws {
    ca = try TestCA()
    leaf = try ca.issue()
  }

  private func secure() throws -> ManagerFixture { try ManagerFixture(tls: TestServer.TLS(certificate: leaf)) }

  private func get(_ manager: AFHTTPSessionManager) async -> BlockResult {
    await outcome { manager.get("get", parameters: nil, success: $0, failure: $1) }
  }

  @Test func anUntrustedServerFails() async throws {
    let fixture = try secure()
    let error = try #require(await get(fixture.manager).error)
    // The code of Apple's systems, which sessions use, too. Foundation's constant of this name has another value on
    // Linux.
    #expect(error.domain == NSURLErrorDomain && error.code == -1202)
    let thrown = await #expect(throws: URLError.self) { _ = try await fixture.manager.get("get") }
    #expect(thrown?.code == .serverCertificateUntrusted)
    #expect(
      error.localizedDescription
        == "The certificate for this server is invalid. You might be connecting to a server that is pretending to be "
        + "“127.0.0.1” which could put your confidential information at risk.")
    #expect(error.userInfo[NSURLErrorFailingURLErrorKey] as? URL == (try fixture.url("/get")))
    #expect(error.userInfo["NSURLErrorFailingURLPeerTrustErrorKey"] is SecTrust)
    #expect(fixture.server.requestsReceived == 0)
  }

  @Test func aPinnedServer() async throws {
    let fixture = try secure()
    let policy = AFSecurityPolicy(
      pinningMode: .certificate, withPinnedCertificates: [Data(leaf.certificateDER)])
    policy.allowInvalidCertificates = true
    fixture.manager.securityPolicy = policy
    let error = await get(fixture.manager).error
    #expect(error == nil)
    #expect(fixture.manager.securityPolicy === policy)
  }

  @Test(arguments: [AFSSLPinningMode.certificate, .publicKey])
  func anotherPinnedServer(mode: AFSSLPinningMode) async throws {
    let fixture = try secure()
    let other = try TestCA(name: "other").issue()
    let policy = AFSecurityPolicy(pinningMode: mode, withPinnedCertificates: [Data(other.certificateDER)])
    policy.allowInvalidCertificates = true
    fixture.manager.securityPolicy = policy
    #expect(await get(fixture.manager).error?.code == URLError.Code.serverCertificateUntrusted.rawValue)
  }

  /// The default handling of a trust challenge is to ask the security policy.
  @Test func theHandlerLeavesItToThePolicy() async throws {
    let fixture = try secure()
    fixture.manager.setAuthenticationChallengeHandler { _, _, _, _ in
      URLSession.AuthChallengeDisposition.performDefaultHandling
    }
    #expect(await get(fixture.manager).error?.code == URLError.Code.serverCertificateUntrusted.rawValue)
    let policy = AFSecurityPolicy.default()
    policy.allowInvalidCertificates = true
    policy.validatesDomainName = false
    fixture.manager.securityPolicy = policy
    #expect(await get(fixture.manager).error == nil)
  }

  /// If the session's block is set, it decides alone.
  @Test func theSessionsBlock() async throws {
    let fixture = try secure()
    let journal = Journal()
    fixture.manager.setSessionDidReceiveAuthenticationChallengeBlock { _, challenge, credential in
      journal.note(challenge.protectionSpace.authenticationMethod)
      guard let trust = challenge.protectionSpace.serverTrust else { return .performDefaultHandling }
      credential?.pointee = URLCredential(trust: trust)
      return .useCredential
    }
    #expect(await get(fixture.manager).error == nil)
    #expect(journal.lines == [NSURLAuthenticationMethodServerTrust])
  }

  @Test func theErrorsUserInfo() throws {
    let url = try #require(URL(string: "https://example.com/get"))
    let full = AFURLSessionManager.trustError(nil, url)
    #expect(full.userInfo[NSURLErrorFailingURLErrorKey] as? URL == url)
    #expect(full.userInfo["NSErrorFailingURLStringKey"] as? String == url.absoluteString)
    #expect(full.userInfo["NSURLErrorFailingURLPeerTrustErrorKey"] == nil)
    let empty = AFURLSessionManager.trustError(nil, nil)
    #expect(empty.userInfo.keys.sorted() == [NSLocalizedDescriptionKey, NSLocalizedFailureReasonErrorKey].sorted())
  }

  // MARK: - Policies that cannot pin

  @Test(arguments: [AFSSLPinningMode.none, .certificate, .publicKey])
  func policiesOfASecureManager(mode: AFSSLPinningMode) {
    let manager = AFHTTPSessionManager(baseURL: URL(string: "https://example.com"))
    let policy = AFSecurityPolicy(pinningMode: mode)
    manager.securityPolicy = policy
    #expect(manager.securityPolicy === policy)
  }

  @Test(arguments: [AFSSLPinningMode.certificate, .publicKey], [true, false])
  func policiesThatAreRefused(mode: AFSSLPinningMode, hasBaseURL: Bool) async throws {
    let fixture = try ManagerFixture()
    let manager = hasBaseURL ? fixture.manager : AFHTTPSessionManager()
    let before = manager.securityPolicy
    manager.securityPolicy = AFSecurityPolicy(pinningMode: mode)
    #expect(manager.securityPolicy === before)
    let error = try #require(await get(manager).error)
    let name = mode == .certificate ? "AFSSLPinningModeCertificate" : "AFSSLPinningModePublicKey"
    #expect(error.localizedDescription == "Invalid Security Policy")
    let thrown = await #expect(throws: URLError.self) { _ = try await manager.get("get") }
    #expect(thrown?.code == .secureConnectionFailed)
    #expect(
      error.localizedFailureReason
        == "A security policy configured with `\(name)` can only be applied on a manager with a secure base URL "
        + "(i.e. https)"
    )
    // Tasks made from complete requests fail, too, and nothing is sent.
    let request = try fixture.request("/get")
    let outcome = await outcome { manager.dataTask(with: request, completionHandler: $0).resume() }
    #expect(outcome.error == error)
    let form = await AFNetworkingTests.outcome {
      manager.post("post", parameters: nil, constructingBodyWith: { _ in }, success: $0, failure: $1)
    }
    #expect(form.error == error && form.task == nil)
    #expect(fixture.server.requestsReceived == 0)
    manager.securityPolicy = AFSecurityPolicy(pinningMode: .none)
    let whole = fixture.server.url("/get")
    #expect(
      await AFNetworkingTests.outcome { manager.get(whole, parameters: nil, success: $0, failure: $1) }.error == nil)
    manager.invalidateSessionCancelingTasks(true, resetSession: false)
  }
}
