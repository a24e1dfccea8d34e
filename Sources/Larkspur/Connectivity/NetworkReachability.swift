import Foundation

/// Whether a way leads to a host, to an address or anywhere at all, and over what kind of link; and news of it.
///
/// It is what System Configuration on Darwin calls reachability, and its name there is ``SCNetworkReachability``. The kernel
/// is asked for its routes and links (rtnetlink). Nothing is sent, unless a name has to be looked up: so a way says nothing
/// about who is at its end. It is good for telling people why something failed, and for trying again when something has
/// changed. It is no reason not to try.
///
/// ```swift
/// for await path in NetworkReachability(host: "www.example.com").paths { print(path) }
/// ```
///
/// One thread watches the network for the whole process, and sleeps while nothing changes. It sees the network namespace of
/// the thread that first asks.
public final class NetworkReachability: Sendable {
  /// What a way goes over.
  public enum LinkKind: Hashable, Sendable {
    /// This machine itself.
    case loopback
    /// Ethernet and the like: also most virtual machines and containers.
    case wired
    /// WiFi.
    case wireless
    /// A modem: WWAN.
    case cellular
    /// A tunnel, or what else tells nothing of its hardware.
    case other
  }

  /// What is known of a way at one moment.
  public enum Path: Hashable, Sendable {
    /// The kernel does not tell (a sandbox without netlink), or names cannot be looked up for want of something of our own.
    case unknown
    /// No route leads there, its link is down or has no carrier, or the name has no address.
    case unreachable
    /// A route leads there, over a link of this kind.
    case reachable(LinkKind)

    /// Whether it is known that there is a way.
    public var isReachable: Bool { if case .reachable = self { true } else { false } }
  }

  /// A stay of an observer: it ends with ``cancel()``, or with this object.
  public final class Observation: Sendable {
    private let watch: ReachabilityWatch

    init(_ watch: ReachabilityWatch) { self.watch = watch }

    deinit { watch.end() }

    /// No call begins after this. One that has begun may still be under way.
    public func cancel() { watch.end() }
  }

  private let target: ReachabilityTarget

  private init(_ target: ReachabilityTarget) { self.target = target }

  /// Of anywhere: whether a default route, of IPv4 or IPv6, leads over a link that is up and has a carrier.
  public convenience init() { self.init(.anywhere) }

  /// Of a host: an address without brackets, or a name. A name is looked up each time the network changes, and from time to
  /// time while there is no way; a way to one of its addresses is a way to it. What cannot be a name is never reachable.
  public convenience init(host: String) { self.init(ReachabilityTarget(host: host)) }

  /// Of a socket address: the bytes of a `sockaddr_in` or a `sockaddr_in6`. One of all zeros means anywhere. Nil: they are
  /// neither.
  public convenience init?(socketAddress: Data) {
    guard let target = ReachabilityTarget(socketAddress: socketAddress) else { return nil }
    self.init(target)
  }

  /// Calls `observer` once as soon as something is known, and then after each change, until the result goes.
  ///
  /// The calls come one at a time, on a thread of the system's; they may block, and are late then. What changes back
  /// meanwhile is not told.
  public func observe(_ observer: @escaping @Sendable (Path) -> Void) -> Observation {
    let watch = ReachabilityWatch(target, observer)
    watch.begin()
    return Observation(watch)
  }

  /// What ``observe(_:)`` tells, for a loop: the first one is what is known now. A loop that is slow gets the latest.
  public var paths: AsyncStream<Path> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let observation = observe { continuation.yield($0) }
      continuation.onTermination = { _ in observation.cancel() }
    }
  }
}

/// Darwin's name for ``NetworkReachability``.
public typealias SCNetworkReachability = NetworkReachability

/// Of a host, as ``NetworkReachability/init(host:)`` has it. It is never nil here.
///
/// - Parameters:
///   - allocator: Darwin's; nil here.
///   - nodename: The host.
public func SCNetworkReachabilityCreateWithName(_ allocator: Never?, _ nodename: String) -> SCNetworkReachability? {
  NetworkReachability(host: nodename)
}
