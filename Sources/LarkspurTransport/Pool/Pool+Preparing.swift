import LarkspurBytes
import LarkspurHTTP

/// What a pool does before a request leaves.
extension Pool {
  /// Opens connections before requests need them, so that the endpoint has `count`, as far as the limits allow, and waits
  /// for those that are being opened. Connections without a request close after the idle time.
  ///
  /// - Returns: The number of the endpoint's connections, including those in use.
  /// - Throws: The error of the latest dial, if the endpoint has no connection.
  public func prepare(_ count: Int, of endpoint: Endpoint) async throws(TransportError) -> Int {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    for dial in startDials(count, of: endpoint) { await dial.value }
    let present = connectionCount(of: endpoint)
    if present == 0, let failure = endpoint.latestDial?.failure { throw failure }
    return present
  }

  private func connectionCount(of endpoint: Endpoint) -> Int {
    guard let id = endpoint.id else { return 0 }
    return loopBound.state.decide { machine, _ in machine.members(of: id).count }
  }

  /// Waits until the rate limit lets a request to the endpoint leave.
  func waitForRate(of endpoint: Endpoint, in slot: RequestSlot, until deadline: Deadline) async throws(TransportError) {
    guard let moment = rates.host(of: endpoint, at: loop.now)?.takeRequest(at: loop.now), moment > loop.now else {
      return
    }
    let timer = loop.startTimer(min(moment, deadline)) { slot.endPause() }
    await slot.whilePaced()
    loop.stopTimer(timer)
    guard !slot.isCancelled else { throw .cancelled }
    if deadline < moment { throw .timedOut(.queueing) }
  }
}
