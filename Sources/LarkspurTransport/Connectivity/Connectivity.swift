import LarkspurIO

/// The known state of the machine's network connections.
public struct Connectivity: Hashable, Sendable {
  /// The network's links, addresses and routes, or `nil` if the kernel does not report them (a sandbox without netlink,
  /// a shortage of descriptors).
  public var network: NetworkSnapshot?

  /// Whether an attempt to reach another machine makes sense: ``NetworkSnapshot/isOnline``, or `true` if nothing is
  /// known. If `false`, loopback and destinations of other routes may still be reachable: see
  /// ``ConnectivityMonitor/canReach(_:)``.
  public var isOnline: Bool { network?.isOnline ?? true }

  public init(network: NetworkSnapshot? = nil) { self.network = network }
}
