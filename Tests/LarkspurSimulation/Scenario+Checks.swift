import LarkspurClient
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The checks of a scenario that the oracle does not make.
extension Scenario {
  func checkLimits(at address: SocketAddress) {
    let open = kernel.openLinks.compactMap(\.address).filter { !Self.privateAddresses.contains($0) } + [address]
    guard let names = names.first(where: { $0.addresses.contains(address) })?.addresses else { return }
    // A dial has at most as many sockets as there are addresses.
    let here = open.count { names.contains($0) }
    oracle.check(here <= options.limits.perEndpointMax * names.count, "\(here) connections to \(names)")
    let sockets = options.limits.totalMax * (self.names.map(\.addresses.count).max() ?? 1)
    oracle.check(open.count <= sockets, "\(open.count) connections in all")
  }

  /// Checks that a request ends soon after its deadline or its cancellation.
  func checkTime(_ plan: ClientScript.Plan, _ script: ClientScript, began: UInt64) {
    let slack = milliseconds(5) + 2 * faults.lateness + 1_000 * faults.callTime
    if let time = plan.timeMax {
      let late = kernel.time - min(began + time, kernel.time)
      oracle.check(late <= slack, "request \(plan.number) ended \(late) ns after its deadline")
    }
    if let time = script.cancelledAfter {
      let from = max(seconds(1) + script.start + time, began)
      let late = kernel.time - min(from, kernel.time)
      oracle.check(
        late <= slack + 2 * faults.lateness, "request \(plan.number) ended \(late) ns after it was cancelled")
    }
  }

  /// Checks that an error has a cause.
  func check(_ error: TransportError, of plan: ClientScript.Plan, _ script: ClientScript) {
    let isCancelled = script.cancelledAfter != nil
    let isDisturbed = faults.cuts + faults.answerFaults + faults.idleFaults + faults.connectFaults > 0
    let isFine =
      switch error {
      case _ where isAbandoned(plan, error): true
      case .resolutionFailed: faults.nameFaults > 0
      case .tls, .proxy, .localEndpointUnusable, .optionInvalid, .bodyFailed, .internalInconsistency: false
      case .cancelled: if case .cancel = plan.reading { true } else { isCancelled }
      case .timedOut(.connecting, _), .timedOut(.resolving, _):
        plan.timeMax != nil || retries?.policy.attemptTimeout != nil || faults.connectFaults + faults.cuts > 0
          || !faults.isCalm
      case .timedOut: plan.timeMax != nil || retries?.policy.attemptTimeout != nil
      case .connectFailed: isDisturbed || faults.kernelFaults > 0
      case .unavailable: faults.kernelFaults + faults.connectFaults > 0 || faults.descriptorsMax < .max
      case .connectionLost, .connectionClosed, .badResponse: isDisturbed
      case .tooManyWaiting: options.limits.waitingMax <= 5
      case .localMisuse(.poolShutDown): isShutDown
      case .localMisuse(.bodyTooLarge): if case .collect = plan.reading { true } else { false }
      case .localMisuse: false
      }
    oracle.check(isFine, "request \(plan.number) failed without a cause: \(error)")
  }

  private func isAbandoned(_ plan: ClientScript.Plan, _ error: TransportError) -> Bool {
    if case .abandon(let own) = plan.reading { own == error } else { false }
  }

  func checkLeftovers(_ pool: Pool?) {
    for offence in kernel.offences { oracle.complain(offence) }
    let links = kernel.openLinks
    oracle.check(links.isEmpty, "connections \(links.map(\.number)) are left open")
    oracle.check(loop.slotsInUse == 0, "\(loop.slotsInUse) slots are in use")
    oracle.check(loop.chunkBytesLent == 0, "\(loop.chunkBytesLent) bytes of chunks are lent")
    if let pool {
      oracle.check(pool.counts == (0, 0, 0), "the pool counts \(pool.counts)")
    }
    // The work of a world is bounded by its events.
    oracle.check(kernel.idleWaitsMost <= Self.idleWaitsMax, "\(kernel.idleWaitsMost) turns in a row did nothing")
  }

  private static let idleWaitsMax = 100

  /// Returns the number of an error in the trace.
  func code(for error: TransportError) -> Int {
    switch error {
    case .resolutionFailed: 1
    case .connectFailed: 2
    case .timedOut: 3
    case .cancelled: 4
    case .connectionLost: 5
    case .connectionClosed: 6
    case .tls: 7
    case .badResponse: 8
    case .tooManyWaiting: 9
    case .unavailable: 10
    case .internalInconsistency: 11
    case .localMisuse: 12
    case .proxy: 13
    case .localEndpointUnusable: 14
    case .bodyFailed: 15
    case .optionInvalid: 16
    }
  }
}
