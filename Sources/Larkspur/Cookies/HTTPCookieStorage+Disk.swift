import Foundation
import LarkspurHTTP
import Synchronization

/// The exchange of cookies between memory and file.
extension HTTPCookieStorage {
  /// Reads the cookies, which may record their use.
  func withJar<Result: Sendable>(_ body: (inout CookieJar) -> Result) -> Result {
    state.withLock { state in
      load(&state)
      // Changes that could not be written wait for the next change. Reading does not schedule another write.
      let hadChanges = state.jar.hasChanges
      defer { settle(&state, isChanged: !hadChanges) }
      return body(&state.jar)
    }
  }

  /// Changes the cookies. `body` returns whether it has changed anything.
  func change(_ body: (inout State) -> Bool) -> Bool {
    state.withLock { state in
      load(&state)
      defer { settle(&state) }
      return body(&state)
    }
  }

  private func load(_ state: inout State) {
    guard !state.isLoaded, let disk else { return }
    state.isLoaded = true
    let content = disk.content()
    state.jar.adopt(content.cookies)
    state.fileChecksum = content.checksum
  }

  private func settle(_ state: inout State, isChanged: Bool = true) {
    occupancy.store((state.jar.isEmpty ? Occupancy.empty : .occupied).rawValue, ordering: .relaxed)
    guard isChanged, state.jar.hasChanges, !state.isWriteScheduled else { return }
    state.isWriteScheduled = true
    CookieWriting.schedule(self)
  }

  /// Merges the changes into the file, and the changes of other processes into memory. Blocks until that is done.
  ///
  /// For each cookie the latest change counts. Changes that cannot be written are tried again with the next change.
  package func write() -> Written {
    guard let disk else { return .done }
    let work = state.withLock { state -> (changes: [Cookie.Identity: CookieTime], cookies: [Cookie])? in
      // Another call is writing. Report `busy`, so that the caller does not take its unfinished changes for written.
      guard !state.isWriting else { return nil }
      state.isWriteScheduled = false
      guard state.jar.hasChanges else { return ([:], []) }
      let changes = state.jar.takeChanges()
      state.isWriting = !changes.isEmpty
      return (changes, state.jar.persistent(of: changes))
    }
    guard let (changes, cookies) = work else { return .busy }
    guard !changes.isEmpty else { return .done }
    var updated: (content: CookieDisk.Content, before: UInt64)?
    var written = Written.done
    var isOverruled = false
    do {
      updated = try disk.update { present in
        // A stored cookie is newer than the change here: another process has written it since, or the clock was set
        // back.
        isOverruled = present.contains { cookie in changes[cookie.identity].map { cookie.update > $0 } ?? false }
        return Self.merge(present, with: cookies, changes)
      }
      if updated == nil { written = .busy }
    } catch {
      written = .failed
    }
    state.withLock { state in
      state.isWriting = false
      if let updated {
        // If this storage was the last writer, the file has nothing new. Skipping it avoids holding the lock for each
        // cookie.
        if isOverruled || updated.before != state.fileChecksum { state.jar.adopt(updated.content.cookies) }
        state.fileChecksum = updated.content.checksum
      } else {
        state.jar.returnChanges(changes)
      }
      occupancy.store((state.jar.isEmpty ? Occupancy.empty : .occupied).rawValue, ordering: .relaxed)
    }
    return written
  }

  package enum Written: Equatable {
    /// All changes are on the disk.
    case done
    /// Another writer is active. Try again soon.
    case busy
    /// The changes are tried again with the next change.
    case failed
  }

  /// Writes the changes now, in the background, and then calls `completion` there. Without a file, calls `completion`
  /// at once.
  func flush(_ completion: @escaping @Sendable () -> Void = {}) {
    guard disk != nil else { return completion() }
    CookieWriting.write(self, completion)
  }

  /// Starts writing the changes in the background, if there are any. Does not block.
  func writeSoon() {
    if disk != nil, state.withLock({ $0.jar.hasChanges }) { CookieWriting.write(self) {} }
  }

  private static func merge(
    _ present: [Cookie], with ours: [Cookie], _ changes: [Cookie.Identity: CookieTime]
  ) -> [Cookie] {
    // A process that has not written for long must not bring back cookies that other processes have removed or replaced
    // since.
    let theirs = present.filter { cookie in changes[cookie.identity].map { cookie.update > $0 } ?? true }
    let kept = Set(theirs.map(\.identity))
    return (theirs + ours.filter { !kept.contains($0.identity) }).sorted { $0.creation < $1.creation }
  }
}

/// The schedule of the writes.
enum CookieWriting {
  /// The queue that writes the files one after another. User code does not run on it. A scheduled write does not wait
  /// for other processes; a requested one does, up to `attemptsMax`.
  private static let queue = DispatchQueue(label: "larkspur.cookies", qos: .utility)

  /// How long changes are collected: a page with many cookies causes one write.
  static let delay = DispatchTimeInterval.milliseconds(500)

  /// The delay before the next attempt while another process is writing.
  private static let retryDelay = DispatchTimeInterval.milliseconds(20)

  /// Maximum number of attempts, 10 ms apart, of a requested write or at the end of a storage or process. After these 5
  /// s the other writer is taken to be stopped.
  private static let attemptsMax = 500

  static func schedule(_ storage: HTTPCookieStorage, after delay: DispatchTimeInterval = delay) {
    queue.asyncAfter(deadline: .now() + delay) { [weak storage] in
      if let storage, storage.write() == .busy { schedule(storage, after: retryDelay) }
    }
  }

  static func write(_ storage: HTTPCookieStorage, _ completion: @escaping @Sendable () -> Void) {
    queue.async {
      finish(storage)
      completion()
    }
  }

  /// Writes the changes on the calling thread. Blocks while another writer is active.
  static func finish(_ storage: HTTPCookieStorage) {
    var attempts = 1
    while storage.write() == .busy, attempts < attemptsMax {
      attempts += 1
      Thread.sleep(forTimeInterval: 0.01)
    }
  }

  /// Writes the changes after a write that is in progress. Blocks until both are done.
  fileprivate static func finishNow(_ storage: HTTPCookieStorage) { queue.sync { finish(storage) } }
}

extension HTTPCookieStorage: FinishedAtExit {
  package func finishAtExit() { CookieWriting.finishNow(self) }
}
