import Foundation
import LarkspurTransport

/// Waiting for a network (`waitsForConnectivity`).
///
/// The task tries, and waits if that fails for want of a network. Whatever changes is a reason to try again: the kernel
/// tells of links, addresses and routes, but not whether they lead to the server.
extension Transfer {
  /// True: there was no network, and something has changed since. To be tried again.
  func hasWaitedForConnectivity(after error: TransportError) async throws(URLError) -> Bool {
    guard core.waitsForConnectivity, interruption == nil, let absence = NetworkAbsence(error) else {
      return false
    }
    let monitor = ConnectivityMonitor.shared
    let change = Question<Void>()
    // First observe, then look: no change falls between the two.
    let observation = monitor.observe { _ in change.answer(()) }
    defer { observation.cancel() }
    guard absence.holds(monitor) else {
      // Perhaps the network has come between the failure and the look. But not time and again.
      guard case .noWay = absence, !hasTriedAgainAtOnce else { return false }
      hasTriedAgainAtOnce = true
      return true
    }
    hasTriedAgainAtOnce = false
    if !hasWaitedForConnectivity {
      hasWaitedForConnectivity = true
      // Those of the background always wait, and nobody hears of it.
      if hasDelegate, !core.isBackground {
        tellLater { session, task, delegate in delegate.urlSession(session, taskIsWaitingForConnectivity: task) }
      }
    }
    stopIdleTime()
    defer { countIdleTime() }
    _ = try await waiting(givingUpBy: { change.giveUp() }, timeCounts: true) { await change.wait() }
    return true
  }
}
