import LarkspurIO
import LarkspurTransport

/// A failure that there is no network to blame for, or may be: what could not be reached.
enum NetworkAbsence: Equatable {
  /// The kernel knows no way to any of the host's addresses.
  case noWay([SocketAddress])
  /// The host's name could not be looked up.
  case noName

  /// Nil: somebody was there, and something else went wrong.
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

  /// What connect says where no route leads: the second where a router or a neighbour that is gone has told, the
  /// others by the kind of the route, or for want of an address of our own.
  private static let noWay: [Errno] = [
    .networkUnreachable, .hostUnreachable, .networkDown, .accessDenied, .invalidArgument, .addressNotAvailable,
  ]

  /// Whether it is the network that is missing. If it is there, and the host is not, waiting would not help.
  func holds(_ monitor: ConnectivityMonitor) -> Bool {
    switch self {
    case .noWay(let addresses): !addresses.contains { monitor.canReach($0) }
    case .noName: !monitor.current.isOnline
    }
  }
}
