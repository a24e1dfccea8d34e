import LarkspurBytes
import LarkspurIO
import Synchronization

/// One look-up of a host name on a thread of its own, because the system's resolver blocks. The first of its
/// answer, the deadline and a cancellation ends the wait; the thread then ends by itself.
final class Lookup: Sendable {
  enum Outcome: Sendable {
    case found([SocketAddress])
    case failed(String)
    case timedOut
    case cancelled
  }

  private struct State {
    var outcome: Outcome?
    var waiter: Waiter?
  }

  private let state = Mutex(State())

  init(host: String, port: UInt16) throws(Errno) {
    let thread = try SystemThread(name: "larkspur-lookup") { [self] in
      do throws(NameLookup.Failure) {
        finish(.found(try NameLookup.addresses(of: host, port: port)))
      } catch {
        switch error {
        case .failed(let reason): finish(.failed(reason))
        }
      }
    }
    thread.detach()
  }

  /// Waits for the outcome, on the loop.
  func outcome(deadline: Deadline, on loop: ClientLoop) async -> Outcome {
    let timer = loop.startTimer(deadline) { [self] in finish(.timedOut) }
    defer { loop.stopTimer(timer) }
    await withTaskCancellationHandler {
      await Waiter.suspend { waiter in
        let isOver = state.withLock { state in
          if state.outcome == nil { state.waiter = waiter }
          return state.outcome != nil
        }
        if isOver { waiter.wake() }
      }
    } onCancel: {
      finish(.cancelled)
    }
    return state.withLock { $0.outcome } ?? .cancelled
  }

  /// The first outcome counts.
  private func finish(_ outcome: Outcome) {
    let waiter = state.withLock { state -> Waiter? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      let waiter = state.waiter
      state.waiter = nil
      return waiter
    }
    waiter?.wake()
  }
}
