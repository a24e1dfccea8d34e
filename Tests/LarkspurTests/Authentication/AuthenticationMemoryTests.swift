import Foundation
import LarkspurHTTP
import Synchronization
import Testing

@testable import Larkspur

@Suite struct AuthenticationMemoryTests {
  static let request = AuthenticatedRequest(method: "GET", target: "/", to: .origin)

  static func target(_ number: Int = 0) -> AuthenticationTarget {
    AuthenticationTarget(.origin, scheme: "http", host: "\(number).example", port: 80)
  }

  static func answer(_ field: String, to credential: URLCredential) throws -> AuthenticationAnswer {
    AuthenticationAnswer(
      try #require(AuthenticationOffer.List([field]).offers.first), try #require(credential.passwordCredential))
  }

  /// A memory without credentials does not evaluate the target, so a session without authentication does not pay for
  /// the lookup.
  @Test func aBlankMemoryAsksNothing() throws {
    let memory = AuthenticationMemory(storage: nil)
    var wasAsked = false
    func target() -> AuthenticationTarget? {
      wasAsked = true
      return Self.target()
    }
    #expect(memory.isBlank)
    #expect(memory.preemptive(to: target(), for: Self.request) == nil && !wasAsked)
    let user = AuthenticationFlowTests.user
    let answer = try Self.answer("Basic realm=r", to: user)
    memory.succeeded(answer, credential: user, for: Self.request, to: Self.target())
    #expect(!memory.isBlank)
    #expect(memory.preemptive(to: target(), for: Self.request) != nil && wasAsked)
    memory.failed(answer, to: Self.target())
    #expect(memory.isBlank)
  }

  /// Eight threads that answer one Digest nonce never use a nonce count twice: a server rejects a repeated count as a
  /// replay.
  @Test func countsAreUsedOnce() throws {
    let memory = AuthenticationMemory(storage: URLCredentialStorage())
    let user = AuthenticationFlowTests.user
    let answer = try Self.answer("Digest realm=r, nonce=n, qop=auth", to: user)
    let counts = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<50 {
        let value = memory.authorization(answer, for: Self.request, to: Self.target())
        let count = Challenge.read([value ?? ""]).first?["nc"]
        counts.withLock { $0.append(count ?? "none") }
      }
    }
    let all = counts.withLock { $0 }
    #expect(all.count == 400 && Set(all).count == 400 && !all.contains("none"))
  }

  /// The memory holds `credentialsMax` credentials; one more evicts the oldest.
  @Test func manyCredentials() throws {
    let memory = AuthenticationMemory(storage: nil)
    let user = AuthenticationFlowTests.user
    let answer = try Self.answer("Basic realm=r", to: user)
    func remember(_ number: Int) {
      memory.succeeded(answer, credential: user, for: Self.request, to: Self.target(number))
    }
    for number in 0..<AuthenticationMemory.credentialsMax { remember(number) }
    #expect(memory.credential(for: answer.offer.space, of: Self.target(0)) === user)
    remember(AuthenticationMemory.credentialsMax - 1)
    #expect(memory.credential(for: answer.offer.space, of: Self.target(0)) === user)
    remember(AuthenticationMemory.credentialsMax)
    #expect(memory.credential(for: answer.offer.space, of: Self.target(0)) == nil)
    #expect(memory.credential(for: answer.offer.space, of: Self.target(AuthenticationMemory.credentialsMax)) === user)
  }

  /// A credential that was removed from the storage before the session began does not make the session drop the same
  /// credential when it succeeds later.
  @Test func earlierWithdrawals() throws {
    let storage = URLCredentialStorage()
    let user = AuthenticationFlowTests.user
    storage.set(user, for: URLProtectionSpaceTests.space())
    storage.remove(user, for: URLProtectionSpaceTests.space())
    let memory = AuthenticationMemory(storage: storage)
    memory.succeeded(
      try Self.answer("Basic realm=r", to: user), credential: user, for: Self.request, to: Self.target())
    #expect(memory.preemptive(to: Self.target(), for: Self.request) != nil)
  }

  /// A storage subclass can call the session's memory while the memory calls the storage, without a deadlock.
  @Test func aStorageThatCallsBack() throws {
    final class Curious: URLCredentialStorage, @unchecked Sendable {
      let memory = Mutex<AuthenticationMemory?>(nil)

      override func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
        memory.withLock { $0.take() }?.removeAll()
        return super.credentials(for: space)
      }
    }
    let storage = Curious()
    let memory = AuthenticationMemory(storage: storage)
    let user = AuthenticationFlowTests.user
    memory.succeeded(
      try Self.answer("Basic realm=r", to: user), credential: user, for: Self.request, to: Self.target())
    let space = URLProtectionSpaceTests.space()
    storage.set(user, for: space)
    storage.remove(user, for: space)
    storage.memory.withLock { $0 = memory }
    #expect(memory.preemptive(to: Self.target(), for: Self.request) == nil)
    #expect(memory.isBlank)
  }
}
