import Dispatch
import Foundation
import Synchronization

/// Posts notifications on the main thread.
///
/// One block posts all pending notifications, in order. Waking the main thread costs about as much as a small request:
/// soon after a delivery, the next one waits a moment, so that more notifications can join it.
///
/// In a program whose main thread never serves its queue, notifications would accumulate without limit, and retain
/// their responses. Above a limit the oldest are dropped.
final class NotificationOutbox: Sendable {
  static let main = NotificationOutbox()

  /// Maximum number of pending notifications. Attack: a server that responds to a program that never runs its main
  /// loop.
  static let waitingMax = 4096

  /// Maximum number of bytes of the responses that pending notifications retain, except for a single larger response.
  static let waitingBytesMax = 64 << 20

  /// Minimum time between a delivery and the next wake-up of the main thread, in nanoseconds. Too short to be noticed.
  static let pauseNanoseconds: UInt64 = 5_000_000

  /// A notification that has not been posted. The main queue makes its `userInfo`, and nothing else calls the closure.
  private struct PendingNotification: @unchecked Sendable {
    let name: NSNotification.Name
    let object: any Sendable
    let byteCount: Int
    let userInfo: () -> [AnyHashable: Any]?
  }

  private struct State {
    var letters: [PendingNotification] = []
    /// Sum of the letters' byte counts.
    var byteCount = 0
    /// Whether a block for the main queue is pending, at once or at a later moment.
    var isOnItsWay = false
    /// Whether code on the main queue delivers pending notifications when it ends.
    var isWithin = false
    /// The time of the latest delivery, by the clock.
    var latest: UInt64?
  }

  private let state = Mutex(State())
  private let max: Int
  private let bytesMax: Int
  private let now: @Sendable () -> UInt64
  private let schedule: @Sendable (_ moment: UInt64?, @escaping @Sendable () -> Void) -> Void

  /// Creates an outbox.
  ///
  /// - Parameters:
  ///   - now: A clock, in nanoseconds.
  ///   - schedule: Calls a block on the main queue, at once or at a moment of the clock.
  init(
    max: Int = NotificationOutbox.waitingMax, bytesMax: Int = NotificationOutbox.waitingBytesMax,
    now: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds },
    schedule: @escaping @Sendable (_ moment: UInt64?, @escaping @Sendable () -> Void) -> Void = { moment, block in
      guard let moment else { return DispatchQueue.main.async(execute: block) }
      DispatchQueue.main.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: moment), execute: block)
    }
  ) {
    self.max = max
    self.bytesMax = bytesMax
    self.now = now
    self.schedule = schedule
  }

  /// Posts a notification, later and on the main thread.
  ///
  /// - Parameters:
  ///   - byteCount: Number of bytes of content that the notification retains while it is pending.
  ///   - userInfo: Makes the user info. Called on the main thread.
  func post(
    _ name: NSNotification.Name, _ object: any Sendable, keeping byteCount: Int = 0,
    userInfo: @escaping () -> [AnyHashable: Any]? = { nil }
  ) {
    let letter = PendingNotification(name: name, object: object, byteCount: byteCount, userInfo: userInfo)
    let (needsBlock, latest, _) = state.withLock { state -> (Bool, UInt64?, [PendingNotification]) in
      // The dropped letters are released after the lock.
      var lost: [PendingNotification] = []
      while let first = state.letters.first,
        state.letters.count >= max || state.byteCount + byteCount > bytesMax
      {
        lost.append(first)
        state.letters.removeFirst()
        state.byteCount -= first.byteCount
      }
      state.letters.append(letter)
      state.byteCount += byteCount
      guard !state.isOnItsWay, !state.isWithin else { return (false, nil, lost) }
      state.isOnItsWay = true
      return (true, state.latest, lost)
    }
    guard needsBlock else { return }
    let moment = latest.map { $0 + Self.pauseNanoseconds }.flatMap { now() < $0 ? $0 : nil }
    schedule(moment) { [self] in
      state.withLock { $0.isOnItsWay = false }
      deliver()
    }
  }

  /// Posts the pending notifications, calls `body`, and then posts the notifications that were added meanwhile, which
  /// so need no separate block. Call it on the main queue.
  func batching(_ body: () -> Void) {
    deliver(isWithin: true)
    body()
    deliver()
  }

  /// Posts the pending notifications. Call it on the main thread.
  private func deliver(isWithin: Bool = false) {
    let now = now()
    var letters = state.withLock { state in
      state.isWithin = isWithin
      state.latest = now
      state.byteCount = 0
      return state.letters.isEmpty ? [] : exchange(&state.letters, with: [])
    }
    guard !letters.isEmpty else { return }
    for letter in letters {
      NotificationCenter.default.post(name: letter.name, object: letter.object, userInfo: letter.userInfo())
    }
    // Performance: reuse the capacity of the array.
    letters.removeAll(keepingCapacity: true)
    state.withLock { if $0.letters.isEmpty { $0.letters = letters } }
  }
}

extension DispatchQueue {
  private static let mainMark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether this is the main queue. `DispatchQueue.main` is a different object at each access, so a comparison of
  /// identities does not answer this.
  var isMain: Bool { getSpecific(key: Self.mainMark) == true }
}
