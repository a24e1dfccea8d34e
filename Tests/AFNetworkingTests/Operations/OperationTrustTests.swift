import Foundation
import LarkspurTestServer
import Testing

@testable import AFNetworking

@Suite(.serialized) struct OperationTrustTests {
  let authority: TestCA
  let server: TestServer

  init() throws {
    authority = try TestCA()
    server = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
  }

  /// A policy that pins the authority's root, which is not among the roots of this machine, so only the pin can make
  /// the server trusted.
  private func pins(_ authority: TestCA) -> AFSecurityPolicy {
    let policy = AFSecurityPolicy(
      pinningMode: .certificate, withPinnedCertificates: [Data(authority.rootCertificateDER)])
    policy.allowInvalidCertificates = true
    return policy
  }

  private func run(
    _ policy: AFSecurityPolicy?, _ change: (AFHTTPRequestOperation) -> Void = { _ in }
  ) async throws -> AFHTTPRequestOperation {
    let operation = try OperationKit.operation(AFHTTPRequestOperation.self, server.url("/get"))
    if let policy { operation.securityPolicy = policy }
    change(operation)
    await operation.run()
    return operation
  }

  @Test func thePolicyDecides() async throws {
    let pinned = try await run(pins(authority))
    #expect(pinned.error == nil && pinned.response.statusCode == 200)
    let other = try await run(pins(try TestCA(name: "other")))
    #expect((other.error as NSError).code == NSURLErrorUserCancelledAuthentication)
    let ordinary = try await run(nil)
    #expect((ordinary.error as NSError).code == NSURLErrorUserCancelledAuthentication)
    #expect(server.requestsReceived == 1)
  }

  /// An idle connection that one policy has trusted does not serve operations with other policies.
  @Test func connectionsAreNotSharedBetweenPolicies() async throws {
    let lenient = AFSecurityPolicy.default()
    lenient.allowInvalidCertificates = true
    lenient.validatesDomainName = false
    #expect(try await run(lenient).error == nil)
    #expect(try await run(nil).error != nil)
    #expect(try await run(pins(try TestCA(name: "other"))).error != nil)
    lenient.allowInvalidCertificates = false
    #expect(try await run(lenient).error != nil)
    #expect(server.requestsReceived == 1)
  }

  @Test func whatABlockTrustsIsItsOwn() async throws {
    let operation = try await run(nil) { operation in
      operation.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in
        guard let trust = challenge.protectionSpace.serverTrust else { return }
        challenge.sender?.use(URLCredential(trust: trust), for: challenge)
      }
    }
    #expect(operation.error == nil)
    #expect(try await run(nil).error != nil)
  }

  /// Operations with equal policies share a session and its connections.
  @Test func equalPoliciesShareConnections() async throws {
    for _ in 0..<3 { #expect(try await run(pins(authority)).error == nil) }
    #expect(server.connectionsAccepted == 1 && server.requestsReceived == 3)
  }

  /// A policy that asks for a wholly pinned chain does not get a connection that a policy with one pin has trusted.
  @Test func aWhollyPinnedChain() async throws {
    #expect(try await run(pins(authority)).error == nil)
    let strict = pins(authority)
    strict.validatesCertificateChain = true
    #expect(try await run(strict).error != nil)
    #expect(server.requestsReceived == 1)
  }

  @Test func sessionsAreKeptUpToALimit() async throws {
    for number in 0..<OperationSessions.keptSessionsMax + 3 {
      let operation = try await run(pins(authority)) {
        $0.credential = URLCredential(user: "\(number)", password: "", persistence: .none)
      }
      #expect(operation.error == nil)
      #expect(OperationSessions.keptSessions <= OperationSessions.keptSessionsMax)
    }
    #expect(OperationSessions.keptSessions == OperationSessions.keptSessionsMax)
    // The sessions that were dropped have closed their connections.
    try await server.waitForClosedConnections(3)
  }
}
