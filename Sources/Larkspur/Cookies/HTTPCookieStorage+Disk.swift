import Foundation
import LarkspurHTTP
import Synchronization

/// From memory to the file, and back.
extension HTTPCookieStorage {
  /// Looks at the cookies, which may note when they were used.
  func withJar<Result: Sendable>(_ body: (inout CookieJar) -> Result) -> Result {
    state.withLock { state in
      load(&state)
      // What could not be written waits for the next change, and not for the next look.
      let hadChanges = state.jar.hasChanges
      defer { settle(&state, isChanged: !hadChanges) }
      return body(&state.jar)
    }
  }

  /// Changes the cookies.
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

  /// Merges what has changed into the file, and what others have changed into memory. It blocks until that is done.
  ///
  /// What changed last counts, for each cookie. What cannot be written is tried again with the next change.
  package func write() -> Written {
    guard let disk else { return .done }
    let work = state.withLock { state -> (changes: [Cookie.Identity: CookieTime], cookies: [Cookie])? in
      // Nothing may be left to write, and not everything on the disk.
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
        // Another process has written later, or a clock was set back.
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
        // A file that this storage wrote last has nothing new, and the lock is not held for each cookie in it.
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
    /// Everything is on the disk.
    case done
    /// Somebody else is writing: it is to be tried again soon.
    case busy
    /// It is tried again with the next change.
    case failed
  }

  /// Writes what has changed now and not in half a second, in the background. Then `completion` is called there.
  func flush(_ completion: @escaping @Sendable () -> Void = {}) {
    guard disk != nil else { return completion() }
    CookieWriting.write(self, completion)
  }

  /// Begins to write what has changed, if anything has. Waits for nothing.
  func writeSoon() {
    if disk != nil, state.withLock({ $0.jar.hasChanges }) { CookieWriting.write(self) {} }
  }

  private static func merge(
    _ present: [Cookie], with ours: [Cookie], _ changes: [Cookie.Identity: CookieTime]
  ) -> [Cookie] {
    // A program that ran for long without writing does not bring back what others have removed or replaced since.
    let theirs = present.filter { cookie in changes[cookie.identity].map { cookie.update > $0 } ?? true }
    let kept = Set(theirs.map(\.identity))
    return (theirs + ours.filter { !kept.contains($0.identity) }).sorted { $0.creation < $1.creation }
  }
}

/// When files are written.
enum CookieWriting {
  /// Writes one file after the other. Nothing of a stranger's runs on it. What is scheduled does not wait for other processes;
  /// what is asked for does, as `attemptsMax` says.
  private static let queue = DispatchQueue(label: "larkspur.cookies", qos: .utility)

  /// How long changes are collected: a page with many cookies is one write.
  static let delay = DispatchTimeInterval.milliseconds(500)

  /// How soon it is tried again while another process is writing.
  private static let retryDelay = DispatchTimeInterval.milliseconds(20)

  /// At the end of a storage or a process another writer is waited for so many times ten milliseconds: it may have been
  /// stopped in the middle.
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

  /// Writes what there is to be written, now.
  static func finish(_ storage: HTTPCookieStorage) {
    var attempts = 1
    while storage.write() == .busy, attempts < attemptsMax {
      attempts += 1
      Thread.sleep(forTimeInterval: 0.01)
    }
  }

  /// A write that is under way is waited for.
  fileprivate static func finishNow(_ storage: HTTPCookieStorage) { queue.sync { finish(storage) } }
}

extension HTTPCookieStorage: FinishedAtExit {
  func finishAtExit() { CookieWriting.finishNow(self) }
}
