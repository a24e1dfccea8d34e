import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Whether a target can be reached, and over which type of link.
public enum AFNetworkReachabilityStatus: Int, Hashable, Sendable {
  /// Not known yet, or the kernel gives no information.
  case unknown = -1
  /// There is no route to the target.
  case notReachable = 0
  /// Reachable over a modem.
  case reachableViaWWAN = 1
  /// Reachable over any other link: a radio, a cable, a tunnel, or this machine itself.
  case reachableViaWiFi = 2
}

/// Monitors whether a host, an address or any destination is reachable, and over which type of link.
///
/// The manager follows the kernel's routes: see `NetworkReachability` for the meaning and the limits of this
/// information. A wired network counts as WiFi, as on a Mac: programs want to know whether traffic costs money.
///
/// ```swift
/// let manager = AFNetworkReachabilityManager.shared()
/// manager.setReachabilityStatusChange { status in print(AFStringFromNetworkReachabilityStatus(status)) }
/// manager.startMonitoring()
/// ```
///
/// The manager calls the block and posts the notification on the main queue, as AFNetworking does: once after the
/// start, and then after each change. A program without a main loop sets ``callbackQueue``, or reads
/// ``networkReachabilityStatus``, which is up to date in any case.
open class AFNetworkReachabilityManager: NSObject, @unchecked Sendable {
  /// A block that is called with the new status.
  public typealias StatusBlock = (AFNetworkReachabilityStatus) -> Void

  /// The block belongs to the program and is called on the program's queue, so it need not be `Sendable`.
  private struct State: @unchecked Sendable {
    var status = AFNetworkReachabilityStatus.unknown
    var block: StatusBlock?
    var queue = DispatchQueue.main
    var observation: NetworkReachability.Observation?
    /// Number of starts and stops. Events of an earlier run are dropped.
    var run = 0
  }

  private let reachability: NetworkReachability
  private let state = Mutex(State())

  /// Creates a manager.
  ///
  /// - Parameter reachability: The target to monitor. On Darwin its type has the name `SCNetworkReachability`.
  public init(reachability: SCNetworkReachability) { self.reachability = reachability }

  /// Creates a manager that monitors whether any destination is reachable at all.
  public convenience override init() { self.init(reachability: NetworkReachability()) }

  /// Creates a manager that monitors the route to a host.
  ///
  /// - Parameter domain: A name or an address. A name is resolved again each time the network changes.
  public convenience init(forDomain domain: String) { self.init(reachability: NetworkReachability(host: domain)) }

  /// Creates a manager that monitors the route to an address.
  ///
  /// - Parameter address: A `sockaddr_in` or a `sockaddr_in6`. An address of all zeros stands for any destination; an
  ///   address of another family is never reachable.
  @safe public convenience init(forAddress address: UnsafeRawPointer) {
    self.init(reachability: SocketAddressReading.reachability(at: address))
  }

  private static let sharedManager = AFNetworkReachabilityManager()

  /// The manager that managers use by default: it monitors whether any destination is reachable.
  open class func shared() -> AFNetworkReachabilityManager { sharedManager }

  /// Creates a manager; equivalent to `init()`.
  open class func manager() -> AFNetworkReachabilityManager { AFNetworkReachabilityManager() }

  deinit { stopMonitoring() }

  /// The current status: `unknown` until ``startMonitoring()`` has been called and the first check is complete.
  open var networkReachabilityStatus: AFNetworkReachabilityStatus { state.withLock { $0.status } }

  /// Whether the target is reachable.
  open var isReachable: Bool { isReachableViaWWAN || isReachableViaWiFi }

  /// Whether the target is reachable over a modem.
  open var isReachableViaWWAN: Bool { networkReachabilityStatus == .reachableViaWWAN }

  /// Whether the target is reachable over any other link.
  open var isReachableViaWiFi: Bool { networkReachabilityStatus == .reachableViaWiFi }

  /// The queue for the block and the notification: the main queue by default. Only AFNetworking on Linux has this
  /// property.
  open var callbackQueue: DispatchQueue {
    get { state.withLock { $0.queue } }
    set { state.withLock { $0.queue = newValue } }
  }

  /// Starts monitoring. If monitoring is already active, restarts it and reports the status once more.
  open func startMonitoring() {
    stopMonitoring()
    let run = state.withLock { state in
      state.run += 1
      return state.run
    }
    let observation = reachability.observe { [weak self] path in self?.receive(path, run: run) }
    let isLate = state.withLock { state in
      guard state.run == run else { return true }
      state.observation = observation
      return false
    }
    if isLate { observation.cancel() }
  }

  /// Stops monitoring. The status keeps its last value.
  open func stopMonitoring() {
    let observation = state.withLock { state in
      state.run += 1
      return state.observation.take()
    }
    observation?.cancel()
  }

  /// The status as text.
  open func localizedNetworkReachabilityStatusString() -> String {
    AFStringFromNetworkReachabilityStatus(networkReachabilityStatus)
  }

  /// Sets the block that is called once after the start and after each change, or removes it if `block` is `nil`.
  open func setReachabilityStatusChange(_ block: ((AFNetworkReachabilityStatus) -> Void)?) {
    state.put(block, at: \.block)
  }

  private func receive(_ path: NetworkReachability.Path, run: Int) {
    let status = AFNetworkReachabilityStatus(path)
    let queue = state.withLock { state -> DispatchQueue? in
      guard state.run == run else { return nil }
      state.status = status
      return state.queue
    }
    queue?.async { [weak self] in self?.notify(status, run: run) }
  }

  private func notify(_ status: AFNetworkReachabilityStatus, run: Int) {
    let (isCurrent, block) = state.withLock { ($0.run == run, $0.block) }
    guard isCurrent else { return }
    block?(status)
    NotificationCenter.default.post(
      name: .AFNetworkingReachabilityDidChange, object: self,
      userInfo: [AFNetworkingReachabilityNotificationStatusItem: NSNumber(value: status.rawValue)])
  }
}

extension AFNetworkReachabilityStatus {
  init(_ path: NetworkReachability.Path) {
    self =
      switch path {
      case .unknown: .unknown
      case .unreachable: .notReachable
      case .reachable(.cellular): .reachableViaWWAN
      case .reachable: .reachableViaWiFi
      }
  }
}

extension NSNotification.Name {
  /// Posted by a reachability manager when its status changes, and once after each start. The object is the manager;
  /// the user info has the status under ``AFNetworkingReachabilityNotificationStatusItem``.
  public static let AFNetworkingReachabilityDidChange = NSNotification.Name(
    "com.alamofire.networking.reachability.change")
}

/// The key for the status in the notification's user info: an `NSNumber` with the raw value of an
/// ``AFNetworkReachabilityStatus``.
public let AFNetworkingReachabilityNotificationStatusItem = "AFNetworkingReachabilityNotificationStatusItem"

/// Returns a status as text: `Not Reachable`, `Reachable via WWAN`, `Reachable via WiFi`, `Unknown`.
public func AFStringFromNetworkReachabilityStatus(_ status: AFNetworkReachabilityStatus) -> String {
  switch status {
  case .notReachable: "Not Reachable"
  case .reachableViaWWAN: "Reachable via WWAN"
  case .reachableViaWiFi: "Reachable via WiFi"
  case .unknown: "Unknown"
  }
}
