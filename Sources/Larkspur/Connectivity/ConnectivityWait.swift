import Foundation
import LarkspurBytes
import LarkspurTransport

/// The history of a load's waits for a network (`waitsForConnectivity`).
struct ConnectivityWait {
  fileprivate var hasNotifiedDelegate = false
  fileprivate var hasTriedAgainAtOnce = false
}

/// Waits for a network.
///
/// The load tries first, and waits if the attempt fails because there is no network. Any change of the network is a
/// reason to try again: the kernel reports links, addresses and routes, but not whether they lead to the server.
extension Load {
  /// Waits for a change if there is no network.
  ///
  /// - Returns: Whether to try the request again.
  func hasWaitedForNetwork(after error: TransportError) async throws(URLError) -> Bool {
    guard let absence = NetworkAbsence(error) else { return false }
    let monitor = ConnectivityMonitor.shared
    let change = OneShot<Void>()
    // Observe first, then compare: no change falls between the two.
    let observation = monitor.observe { _ in change.set(()) }
    defer { observation.cancel() }
    guard absence.holds(monitor) else {
      // The network may have become available between the failure and this check. Until the next wait, this is a reason
      // to try again only once.
      guard case .noWay = absence, !connectivity.hasTriedAgainAtOnce else { return false }
      connectivity.hasTriedAgainAtOnce = true
      return true
    }
    connectivity.hasTriedAgainAtOnce = false
    if !connectivity.hasNotifiedDelegate {
      connectivity.hasNotifiedDelegate = true
      // A background session always waits, and does not call its delegate for that.
      if hasDelegate, !core.isBackground {
        postToDelegate { session, task, delegate in
          delegate.urlSession(session, taskIsWaitingForConnectivity: task)
        }
      }
    }
    stopIdleTime()
    defer { countIdleTime() }
    _ = try await waiting(cancellingBy: { change.cancel() }, timed: "while waiting for a network") {
      await change.get()
    }
    return true
  }
}
