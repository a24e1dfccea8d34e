import Foundation
import LarkspurBytes
import LarkspurTransport

/// A load's waits for a network (`waitsForConnectivity`). It belongs to the loop.
///
/// The load tries first, and waits if the attempt fails because there is no network. Any change of the network is a
/// reason to try again: the kernel reports links, addresses and routes, but not whether they lead to the server.
final class ConnectivityWait {
  private unowned let transfer: Transfer
  private var hasNotifiedDelegate = false
  private var hasTriedAgainAtOnce = false

  init(of transfer: Transfer) { self.transfer = transfer }

  /// Waits for a change if there is no network.
  ///
  /// - Returns: Whether the request is to be tried again.
  func hasWaited(after error: TransportError) async throws(URLError) -> Bool {
    guard let absence = NetworkAbsence(error) else { return false }
    let monitor = ConnectivityMonitor.shared
    let change = OneShot<Void>()
    // Observe first, then compare: no change falls between the two.
    let observation = monitor.observe { _ in change.set(()) }
    defer { observation.cancel() }
    guard absence.holds(monitor) else {
      // The network may have come between the failure and this check. Until the next wait, this is a reason to try
      // again only once.
      guard case .noWay = absence, !hasTriedAgainAtOnce else { return false }
      hasTriedAgainAtOnce = true
      return true
    }
    hasTriedAgainAtOnce = false
    if !hasNotifiedDelegate {
      hasNotifiedDelegate = true
      // A background session always waits, and does not call its delegate for that.
      if transfer.hasDelegate, !transfer.core.isBackground {
        transfer.postToDelegate { session, task, delegate in
          delegate.urlSession(session, taskIsWaitingForConnectivity: task)
        }
      }
    }
    transfer.stopIdleTime()
    defer { transfer.countIdleTime() }
    _ = try await transfer.waiting(givingUpBy: { change.giveUp() }, timed: "while waiting for a network") {
      await change.get()
    }
    return true
  }
}
