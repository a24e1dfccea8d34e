import LarkspurIO
import LarkspurTransport

/// A failure that a missing network may have caused: the part that could not be reached.
enum NetworkAbsence: Equatable {
  /// The kernel has no route to any of the host's addresses.
  case noWay([SocketAddress])
  /// The host's name could not be looked up.
  case noName

  /// Returns the absence behind a failed request.
  ///
  /// - Returns: `nil` if a peer was reached and something else failed.
  init?(_ error: TransportError) {
    switch error {
    case .connectFailed(let attempts):
      guard !attempts.isEmpty, attempts.allSatisfy({ Self.noWay.contains($0.error) }) else { return nil }
      self = .noWay(attempts.map(\.address))
    case .resolutionFailed: self = .noName
    case .proxy(let error):
      guard case .transport(let error) = error.failure, let absence = Self(error) else { return nil }
      self = absence
    default: return nil
    }
  }

  /// The errors of `connect` where no route leads to the peer. A router or a missing neighbour causes
  /// `hostUnreachable`; the kind of the route, or the lack of a local address, causes the others.
  private static let noWay: [Errno] = [
    .networkUnreachable, .hostUnreachable, .networkDown, .accessDenied, .invalidArgument, .addressNotAvailable,
  ]

  /// Whether the network is missing now. If the network is there and only the host is not, waiting does not help.
  func holds(_ monitor: ConnectivityMonitor) -> Bool {
    switch self {
    case .noWay(let addresses): !addresses.contains { monitor.canReach($0) }
    case .noName: !monitor.current.isOnline
    }
  }
}
