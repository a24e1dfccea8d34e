import Dispatch
import Foundation
import Synchronization

/// Carries notifications to the main thread.
///
/// All that wait go by one block, in order. To wake the main thread takes about as much work as a small request: when it
/// has just been there, what comes next waits a moment for what follows it.
///
/// A program whose main thread never serves its queue would keep every notification, and with it every response, for
/// ever: when too many wait the oldest are given up, which nobody would have heard.
final class NotificationOutbox: Sendable {
  static let main = NotificationOutbox()

  /// So many notifications wait at most. Attack: a server that answers, to a program that never turns its main loop.
  static let waitingMax = 4096

  /// So many bytes of responses wait at most, unless it is one response alone.
  static let waitingBytesMax = 64 << 20

  /// The main thread is not woken sooner than this after it has been here, in nanoseconds. Nobody sees so short a time.
  static let pauseNanoseconds: UInt64 = 5_000_000

  private struct Letter: @unchecked Sendable {
    let name: NSNotification.Name
    let object: any Sendable
    let byteCount: Int
    let userInfo: () -> [AnyHashable: Any]?
  }

  private struct State {
    var letters: [Letter] = []
    /// Of the letters.
    var byteCount = 0
    /// A block is on its way to the main queue, or waits for the moment to go.
    var isOnItsWay = false
    /// The main queue is about to deliver by itself.
    var isWithin = false
    /// When it was last here, by the clock.
    var latest: UInt64?
  }

  private let state = Mutex(State())
  private let max: Int
  private let bytesMax: Int
  private let now: @Sendable () -> UInt64
  private let schedule: @Sendable (_ moment: UInt64?, @escaping @Sendable () -> Void) -> Void

  /// - Parameters:
  ///   - now: A clock, in nanoseconds.
  ///   - schedule: Has a block called on the main queue, at once or at a moment of the clock.
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

  /// - Parameters:
  ///   - byteCount: How much content it keeps while it waits.
  ///   - userInfo: Called on the main thread.
  func post(
    _ name: NSNotification.Name, _ object: any Sendable, keeping byteCount: Int = 0,
    userInfo: @escaping () -> [AnyHashable: Any]? = { nil }
  ) {
    let letter = Letter(name: name, object: object, byteCount: byteCount, userInfo: userInfo)
    let (needsBlock, latest, _) = state.withLock { state -> (Bool, UInt64?, [Letter]) in
      // What is given up goes when the lock has gone.
      var lost: [Letter] = []
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

  /// Calls `body` after what waits has been posted, and posts what waits then: what `body` has posted needs no block of
  /// its own. On the main queue.
  func within(_ body: () -> Void) {
    deliver(isWithin: true)
    body()
    deliver()
  }

  /// What waits is posted now. On the main thread.
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
    // There is room for the next ones already.
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

  /// Whether it is the main queue, which is another object each time that it is asked for.
  var isMain: Bool { getSpecific(key: Self.mainMark) == true }
}
