import Foundation
import LarkspurHTTP
import Synchronization

/// What a session knows of the servers and proxies that have asked who it is. One for each session; for any thread.
///
/// Until something is remembered it costs a request one atomic load.
final class AuthenticationMemory: Sendable {
  private struct State {
    var ledger = AuthenticationLedger(hash: messageHash)
    /// The storage's count when the ledger was last compared with it.
    var withdrawals: Int
    /// The users' own objects. Nothing is here that the ledger does not remember, but for what it has dropped lately.
    var credentials: [Key: URLCredential] = [:]
  }

  private struct Key: Hashable {
    let target: AuthenticationTarget
    let space: AuthenticationOffer.Space
  }

  /// Objects kept beside the ledger's. Past it they are thrown away, and challenges propose nothing for a while: servers
  /// that invent realms cannot fill the memory.
  static let credentialsMax = 1024

  private let state: Mutex<State>
  private let isEmpty = Atomic<Bool>(true)
  private let storage: URLCredentialStorage?

  /// `storage`: what goes out of it is forgotten here as well. Nil: the session has none.
  init(storage: URLCredentialStorage?) {
    self.storage = storage
    state = Mutex(State(withdrawals: storage?.withdrawals.load(ordering: .acquiring) ?? 0))
  }

  /// Nothing is remembered of anybody: no request can carry anything unasked.
  var isBlank: Bool { isEmpty.load(ordering: .acquiring) }

  /// What a request may carry unasked. Nil: nothing.
  ///
  /// - Parameters:
  ///   - target: Whom the request goes to; evaluated if anything is remembered at all.
  ///   - request: In the form that `target` sees; likewise.
  func preemptive(
    to target: @autoclosure () -> AuthenticationTarget?, for request: @autoclosure () -> AuthenticatedRequest
  ) -> AuthenticationLedger.Preemptive? {
    if isBlank { return nil }
    guard let target = target() else { return nil }
    let request = request()
    dropWithdrawn()
    return state.withLock { $0.ledger.preemptive(for: request, to: target, clientNonce: clientNonce()) }
  }

  /// The value of `Authorization` or `Proxy-Authorization`. Nil: the answer cannot be written.
  func authorization(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget
  ) -> String? {
    state.withLock { $0.ledger.authorization(answer, for: request, to: target, clientNonce: clientNonce()) }
  }

  /// The target has let the answer pass. `credential`: the object that it came from. `info`: the values of
  /// `Authentication-Info` or `Proxy-Authentication-Info`.
  func succeeded(
    _ answer: AuthenticationAnswer, credential: URLCredential, for request: AuthenticatedRequest,
    to target: AuthenticationTarget, info: [String] = []
  ) {
    // It was for one challenge.
    guard credential.persistence != .none else { return }
    state.withLock { state in
      state.ledger.remember(answer, for: request, to: target, info: info)
      let key = Key(target: target, space: answer.offer.space)
      if state.credentials.count >= Self.credentialsMax, state.credentials[key] == nil { state.credentials = [:] }
      state.credentials[key] = credential
      isEmpty.store(false, ordering: .releasing)
    }
  }

  /// The target has refused the answer.
  func failed(_ answer: AuthenticationAnswer, to target: AuthenticationTarget) {
    state.withLock { state in
      state.ledger.forget(answer, of: target)
      let key = Key(target: target, space: answer.offer.space)
      if state.credentials[key]?.passwordCredential == answer.credential { state.credentials[key] = nil }
      updateEmptiness(state)
    }
  }

  /// What the target has last taken in this space. Nil: nothing yet.
  func credential(for space: AuthenticationOffer.Space, of target: AuthenticationTarget) -> URLCredential? {
    if isBlank { return nil }
    dropWithdrawn()
    return state.withLock { $0.credentials[Key(target: target, space: space)] }
  }

  /// Forgets everything, as `URLSession.reset` does.
  func removeAll() {
    state.withLock { state in
      state.ledger.removeAll()
      state.credentials = [:]
      isEmpty.store(true, ordering: .releasing)
    }
  }

  // MARK: -

  /// A credential that was taken out of the storage is not sent any more.
  private func dropWithdrawn() {
    guard let storage else { return }
    let count = storage.withdrawals.load(ordering: .acquiring)
    let known = state.withLock { $0.withdrawals == count ? [] : $0.ledger.known }
    // Without the lock: a storage may be of the user's making, and call back.
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
