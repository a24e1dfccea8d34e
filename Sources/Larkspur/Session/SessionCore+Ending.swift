import Foundation
import Synchronization

/// The end of a session, and the steps that empty it first.
extension SessionCore {
  func invalidate(cancelsTasks: Bool) {
    guard !isShared else { return }
    let (tasks, loads) = state.withLock { state -> ([URLSessionTask], [Load]) in
      if state.phase == .open { state.phase = .closing }
      if cancelsTasks { state.cancelsTasks = true }
      return cancelsTasks ? (state.tasks.members, state.loads.members) : ([], [])
    }
    for task in tasks { task.cancel() }
    for load in loads { cancel(load) }
    // After the cancellations: a background session that ends forgets the tasks whose files are left, unless they are
    // cancelled.
    background?.willEnd()
    // The next session gets the files that the delegate leaves again.
    if !cancelsTasks { background?.deliverLeft() }
    closeIfOver()
  }

  func sessionGone() {
    state.withLock { $0.isObjectGone = true }
    closeIfOver()
  }

  func closeIfOver() {
    typealias Closing = (
      delegate: (any URLSessionDelegate)?, session: URLSession?, engine: SessionEngine?, background: BackgroundSession?
    )
    let closing = state.withLock { state -> Closing? in
      guard state.isOver else { return nil }
      state.phase = .closed
      defer {
        state.engine = nil
        state.background = nil
      }
      return (state.delegate, state.kept, state.engine, try? state.background?.get())
    }
    guard let closing else { return }
    closing.engine?.shutDown()
    cache?.core.writeSoon()
    cookieStorage?.writeSoon()
    guard let background = closing.background else { return callForEnd(closing.delegate, closing.session) }
    // Behind its last call another session can have the identifier.
    background.close { [self] in callForEnd(closing.delegate, closing.session) }
  }

  private func callForEnd(_ delegate: (any URLSessionDelegate)?, _ session: URLSession?) {
    guard let delegate, let session else { return releaseDelegate() }
    // The session keeps its delegate until the call has returned.
    delegateQueue.insist { [self] in
      delegate.urlSession(session, didBecomeInvalidWithError: nil)
      releaseDelegate()
    }
  }

  private func releaseDelegate() {
    let last = state.withLock { state in
      defer {
        state.delegate = nil
        state.taskDelegate = nil
        state.dataDelegate = nil
        state.selective = nil
        state.kept = nil
      }
      return (state.delegate, state.kept)
    }
    // Releasing these references may run code that calls the session: not while the lock is held.
    withExtendedLifetime(last) {}
  }

  func reset(_ completion: @escaping @Sendable () -> Void) {
    configuration.storage.cookieStorage?.removeCookies(since: .distantPast)
    configuration.storage.cache?.removeAllCachedResponses()
    configuration.storage.credentialStorage?.removeAll()
    memory.removeAll()
    flush(completion)
  }

  func flush(_ completion: @escaping @Sendable () -> Void) {
    let engine = state.withLock { $0.engine }
    let cache = cache
    let renewConnections: @Sendable () -> Void = {
      if let engine { engine.renewConnections(completion) } else { completion() }
    }
    let writeCache: @Sendable () -> Void = {
      if let cache { cache.core.flush(renewConnections) } else { renewConnections() }
    }
    let writeCookies: @Sendable () -> Void = { [jar = configuration.storage.cookieStorage] in
      if let jar { jar.flush(writeCache) } else { writeCache() }
    }
    if let background { background.flush(writeCookies) } else { writeCookies() }
  }
}
