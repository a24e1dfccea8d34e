import Foundation

/// Observes whether a route leads to a host, to an address or to any network at all, and over which kind of link.
///
/// System Configuration on Darwin calls this reachability; the type's name there is ``SCNetworkReachability``. Larkspur
/// queries the kernel's routes and links (rtnetlink). Nothing is sent, except to look up a name, so a route does not
/// prove that the host at its end is up. Use the result to explain to users why a load failed, and to try again after a
/// change. Do not use it as a reason not to try.
///
/// ```swift
/// for await path in NetworkReachability(host: "www.example.com").paths { print(path) }
/// ```
///
/// One thread watches the network for the whole process, and sleeps while nothing changes. The thread sees the network
/// namespace of the thread that first uses this type.
public final class NetworkReachability: Sendable {
  /// The kind of the link that a route uses.
  public enum LinkKind: Hashable, Sendable {
    /// This machine itself.
    case loopback
    /// Ethernet and similar links, as in most virtual machines and containers.
    case wired
    /// WiFi.
    case wireless
    /// A cellular modem (WWAN).
    case cellular
    /// A tunnel, or any other link that does not report its hardware.
    case other
  }

  /// The route as it is known at one moment.
  public enum Path: Hashable, Sendable {
    /// Not known: the kernel does not report routes (a sandbox without netlink), or this process lacks a resource to
    /// look up the name.
    case unknown
    /// No route leads there, the route's link is down or has no carrier, or the lookup of the name fails.
    case unreachable
    /// A route leads there, over a link of this kind.
    case reachable(LinkKind)

    /// Whether a route is known to exist.
    public var isReachable: Bool { if case .reachable = self { true } else { false } }
  }

  /// The registration of an observer. Ends with ``cancel()``, or when this object is released.
  public final class Observation: Sendable {
    private let watch: ReachabilityWatch

    init(_ watch: ReachabilityWatch) { self.watch = watch }

    deinit { watch.end() }

    /// Ends the registration. No call of the observer starts after this; a call that has started may still be running.
    public func cancel() { watch.end() }
  }

  private let target: ReachabilityTarget

  private init(_ target: ReachabilityTarget) { self.target = target }

  /// Observes any network: whether a default route, of IPv4 or IPv6, leads over a link that is up and has a carrier.
  public convenience init() { self.init(.anywhere) }

  /// Observes a host.
  ///
  /// A name is looked up each time the network changes, and from time to time while there is no route. The host is
  /// reachable if a route leads to one of its addresses. Text that cannot be a name is never reachable.
  ///
  /// - Parameter host: An address without brackets, or a name.
  public convenience init(host: String) { self.init(ReachabilityTarget(host: host)) }

  /// Observes a socket address.
  ///
  /// - Parameter socketAddress: The bytes of a `sockaddr_in` or a `sockaddr_in6`. The address of all zeros means any
  ///   network.
  /// - Returns: `nil` if the bytes are neither of these structures.
  public convenience init?(socketAddress: Data) {
    guard let target = ReachabilityTarget(socketAddress: socketAddress) else { return nil }
    self.init(target)
  }

  /// Calls `observer` as soon as the state is known, and then after each change, until the returned object is released.
  ///
  /// The calls come one at a time, on a thread of the system's. A call may block; later calls are delayed then, and a
  /// change that has been undone in the meantime is not reported.
  public func observe(_ observer: @escaping @Sendable (Path) -> Void) -> Observation {
    let watch = ReachabilityWatch(target, observer)
    watch.start()
    return Observation(watch)
  }

  /// The states that ``observe(_:)`` reports, as a sequence. The first element is the state now. A loop that is slower
  /// than the changes gets the latest state only.
  public var paths: AsyncStream<Path> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let observation = observe { continuation.yield($0) }
      continuation.onTermination = { _ in observation.cancel() }
    }
  }
}

/// Darwin's name for ``NetworkReachability``.
public typealias SCNetworkReachability = NetworkReachability

/// Creates an object that observes a host, as ``NetworkReachability/init(host:)`` does.
///
/// - Parameters:
///   - allocator: Darwin's allocator; always `nil` here.
///   - nodename: The host.
/// - Returns: The object. Never `nil` here.
public func SCNetworkReachabilityCreateWithName(_ allocator: Never?, _ nodename: String) -> SCNetworkReachability? {
  NetworkReachability(host: nodename)
}
