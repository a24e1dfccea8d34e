import LarkspurIO

/// What is known of the machine's ways to others.
public struct Connectivity: Hashable, Sendable {
  /// Nil: the kernel does not tell (a sandbox without netlink, a shortage of descriptors).
  public var network: NetworkSnapshot?

  /// Whether it makes sense to try and reach another machine: ``NetworkSnapshot/isOnline``, and where nothing is known it
  /// does. Loopback and what a route leads to can be reached all the same: see ``ConnectivityMonitor/canReach(_:)``.
  public var isOnline: Bool { network?.isOnline ?? true }

  public init(network: NetworkSnapshot? = nil) { self.network = network }
}
