import Foundation
import LarkspurEngine
import LarkspurHTTP
import Synchronization

/// The credentials that servers and proxies have accepted from one session. Each session has one memory. It may be used
/// from any thread.
///
/// Performance: until something is stored, a request pays for one atomic load.
final class AuthenticationMemory: Sendable {
  private struct State {
    var ledger = AuthenticationLedger(hash: messageHash)
    /// The value of the storage's `withdrawals` when the ledger was last compared with the storage.
    var withdrawals: Int
    /// The program's credential objects that belong to the ledger's entries. Some may belong to entries that the ledger
    /// has evicted.
    var credentials: [Key: URLCredential] = [:]
  }

  private struct Key: Hashable {
    let target: AuthenticationTarget
    let space: AuthenticationOffer.Space
  }

  /// Maximum number of credential objects. At this number a new key drops all of them, and until servers accept
  /// credentials again, challenges propose no credential from this memory. The limit keeps a server that invents realms
  /// from filling the memory.
  static let credentialsMax = 1024

  private let state: Mutex<State>
  private let isEmpty = Atomic<Bool>(true)
  private let storage: URLCredentialStorage?

  /// Creates an empty memory.
  ///
  /// - Parameter storage: The session's storage, or `nil` if the session has none. Credentials that are removed from
  ///   the storage are dropped here too.
  init(storage: URLCredentialStorage?) {
    self.storage = storage
    state = Mutex(State(withdrawals: storage?.withdrawals.load(ordering: .acquiring) ?? 0))
  }

  /// Whether nothing is stored, so that no request can carry a credential before it is challenged.
  var isBlank: Bool { isEmpty.load(ordering: .acquiring) }

  /// Returns the credential that a request may carry before it is challenged.
  ///
  /// - Parameters:
  ///   - target: The origin or proxy that the request goes to. Evaluated only if something is stored.
  ///   - request: The request in the form in which it goes to `target`. Evaluated only if something is stored.
  /// - Returns: The answer with its field value, or `nil` if no stored credential applies.
  func preemptive(
    to target: @autoclosure () -> AuthenticationTarget?, for request: @autoclosure () -> AuthenticatedRequest
  ) -> AuthenticationLedger.Preemptive? {
    if isBlank { return nil }
    guard let target = target() else { return nil }
    let request = request()
    dropWithdrawn()
    return state.withLock { $0.ledger.preemptive(for: request, to: target, clientNonce: clientNonce()) }
  }

  /// Returns the value of `Authorization` or `Proxy-Authorization`, or `nil` if the answer cannot be written.
  func authorization(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget
  ) -> String? {
    state.withLock { $0.ledger.authorization(answer, for: request, to: target, clientNonce: clientNonce()) }
  }

  /// Stores an answer that the target has accepted.
  ///
  /// - Parameters:
  ///   - credential: The credential that the answer was made from.
  ///   - info: The values of `Authentication-Info` or `Proxy-Authentication-Info`.
  func succeeded(
    _ answer: AuthenticationAnswer, credential: URLCredential, for request: AuthenticatedRequest,
    to target: AuthenticationTarget, info: [String] = []
  ) {
    // A credential without persistence answers one challenge only.
    guard credential.persistence != .none else { return }
    state.withLock { state in
      state.ledger.remember(answer, for: request, to: target, info: info)
      let key = Key(target: target, space: answer.offer.space)
      if state.credentials.count >= Self.credentialsMax, state.credentials[key] == nil { state.credentials = [:] }
      state.credentials[key] = credential
      isEmpty.store(false, ordering: .releasing)
    }
  }

  /// Drops an answer that the target has refused.
  func failed(_ answer: AuthenticationAnswer, to target: AuthenticationTarget) {
    state.withLock { state in
      state.ledger.forget(answer, of: target)
      let key = Key(target: target, space: answer.offer.space)
      if state.credentials[key]?.passwordCredential == answer.credential { state.credentials[key] = nil }
      updateEmptiness(state)
    }
  }

  /// Returns the credential that the target last accepted in this space, or `nil` if there is none.
  func credential(for space: AuthenticationOffer.Space, of target: AuthenticationTarget) -> URLCredential? {
    if isBlank { return nil }
    dropWithdrawn()
    return state.withLock { $0.credentials[Key(target: target, space: space)] }
  }

  /// Drops everything. `URLSession.reset` calls this.
  func removeAll() {
    state.withLock { state in
      state.ledger.removeAll()
      state.credentials = [:]
      isEmpty.store(true, ordering: .releasing)
    }
  }

  // MARK: -

  /// Drops credentials that were removed from the storage or replaced in it.
  private func dropWithdrawn() {
    guard let storage else { return }
    let count = storage.withdrawals.load(ordering: .acquiring)
    let known = state.withLock { $0.withdrawals == count ? [] : $0.ledger.known }
    // Query the storage without holding the lock: the storage may be a subclass of the program's, which may call back.
    let gone = known.filter { known in
      let kept = storage.credentials(for: URLProtectionSpace(known.target, known.space))?[known.credential.user]
      return kept?.password != known.credential.password
    }
    state.withLock { state in
      state.withdrawals = count
      state.ledger.forget(gone)
      for known in gone { state.credentials[Key(target: known.target, space: known.space)] = nil }
      updateEmptiness(state)
    }
  }

  private func updateEmptiness(_ state: borrowing State) {
    isEmpty.store(state.ledger.isEmpty, ordering: .releasing)
  }
}
