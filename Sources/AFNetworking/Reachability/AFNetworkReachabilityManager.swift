import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Whether, and how, something can be reached.
public enum AFNetworkReachabilityStatus: Int, Hashable, Sendable {
  /// Nothing is known yet, or the kernel does not tell.
  case unknown = -1
  /// No way leads there.
  case notReachable = 0
  /// Over a modem.
  case reachableViaWWAN = 1
  /// Over anything else: a radio, a cable, a tunnel, or this machine itself.
  case reachableViaWiFi = 2
}

/// Watches over which links a host, an address or anywhere can be reached.
///
/// It follows the kernel's routes: see `NetworkReachability` for what that says and what it does not. A wired network counts as
/// WiFi, as it does on a Mac: the question that programs ask is whether bytes cost money.
///
/// ```swift
/// let manager = AFNetworkReachabilityManager.shared()
/// manager.setReachabilityStatusChange { status in print(AFStringFromNetworkReachabilityStatus(status)) }
/// manager.startMonitoring()
/// ```
///
/// The block and the notification come on the main queue, as with AFNetworking, once after the start and then after each
/// change. A program without a main loop sets ``callbackQueue``, or looks at ``networkReachabilityStatus``, which is up to
/// date in any case.
open class AFNetworkReachabilityManager: NSObject, @unchecked Sendable {
  /// Told of a new status.
  public typealias StatusBlock = (AFNetworkReachabilityStatus) -> Void

  /// The block is the program's, and is called on the program's queue: it need not be `Sendable`.
  private struct State: @unchecked Sendable {
    var status = AFNetworkReachabilityStatus.unknown
    var block: StatusBlock?
    var queue = DispatchQueue.main
    var observation: NetworkReachability.Observation?
    /// Counts the starts: what an earlier one still has to tell is not told.
    var run = 0
  }

  private let reachability: NetworkReachability
  private let state = Mutex(State())

  /// - Parameter reachability: What is watched. `SCNetworkReachability` is its name on Darwin.
  public init(reachability: SCNetworkReachability) { self.reachability = reachability }

  /// Watches whether there is a way anywhere at all.
  public convenience override init() { self.init(reachability: NetworkReachability()) }

  /// Watches the way to a host.
  ///
  /// - Parameter domain: A name or an address. The name is looked up again each time the network changes.
  public convenience init(forDomain domain: String) { self.init(reachability: NetworkReachability(host: domain)) }

  /// Watches the way to an address.
  ///
  /// - Parameter address: A `sockaddr_in` or a `sockaddr_in6`. One of all zeros means anywhere; one of another family
  ///   has no way.
  @safe public convenience init(forAddress address: UnsafeRawPointer) {
    self.init(reachability: SocketAddressReading.reachability(at: address))
  }

  private static let sharedManager = AFNetworkReachabilityManager()

  /// The one that managers have at first: of anywhere.
  open class func shared() -> AFNetworkReachabilityManager { sharedManager }

  /// The same as `init()`.
  open class func manager() -> AFNetworkReachabilityManager { AFNetworkReachabilityManager() }

  deinit { stopMonitoring() }

  /// What is known now: `unknown` until ``startMonitoring()`` has been called and the first look is over.
  open var networkReachabilityStatus: AFNetworkReachabilityStatus { state.withLock { $0.status } }

  /// Whether there is a way.
  open var isReachable: Bool { isReachableViaWWAN || isReachableViaWiFi }

  /// Whether there is one over a modem.
  open var isReachableViaWWAN: Bool { networkReachabilityStatus == .reachableViaWWAN }

  /// Whether there is one over anything else.
  open var isReachableViaWiFi: Bool { networkReachabilityStatus == .reachableViaWiFi }

  /// Where the block is called and the notification is posted: the main queue at first. Only AFNetworking on Linux has it.
  open var callbackQueue: DispatchQueue {
    get { state.withLock { $0.queue } }
    set { state.withLock { $0.queue = newValue } }
  }

  /// Begins to watch. If it does so already it begins anew, and tells once more.
  open func startMonitoring() {
    stopMonitoring()
    let run = state.withLock { state in
      state.run += 1
      return state.run
    }
    let observation = reachability.observe { [weak self] path in self?.hear(path, run: run) }
    let isLate = state.withLock { state in
      guard state.run == run else { return true }
      state.observation = observation
      return false
    }
    if isLate { observation.cancel() }
  }

  /// Ends it. The status stays as it was.
  open func stopMonitoring() {
    let observation = state.withLock { state in
      state.run += 1
      return state.observation.take()
    }
    observation?.cancel()
  }

  /// The status in words.
  open func localizedNetworkReachabilityStatusString() -> String {
    AFStringFromNetworkReachabilityStatus(networkReachabilityStatus)
  }

  /// Sets what is called after each change. Nil: nothing.
  open func setReachabilityStatusChange(_ block: ((AFNetworkReachabilityStatus) -> Void)?) {
    state.put(block, at: \.block)
  }

  private func hear(_ path: NetworkReachability.Path, run: Int) {
    let status = AFNetworkReachabilityStatus(path)
    let queue = state.withLock { state -> DispatchQueue? in
      guard state.run == run else { return nil }
      state.status = status
      return state.queue
    }
    queue?.async { [weak self] in self?.tell(status, run: run) }
  }

  private func tell(_ status: AFNetworkReachabilityStatus, run: Int) {
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
  /// Posted by a reachability manager when its status has changed, and once after each start. Its object is the manager; under
  /// ``AFNetworkingReachabilityNotificationStatusItem`` stands the status.
  public static let AFNetworkingReachabilityDidChange = NSNotification.Name(
    "com.alamofire.networking.reachability.change")
}

/// In the notification's user info: an `NSNumber` of the raw value of an ``AFNetworkReachabilityStatus``.
public let AFNetworkingReachabilityNotificationStatusItem = "AFNetworkingReachabilityNotificationStatusItem"

/// A status in words: `Not Reachable`, `Reachable via WWAN`, `Reachable via WiFi`, `Unknown`.
public func AFStringFromNetworkReachabilityStatus(_ status: AFNetworkReachabilityStatus) -> String {
  switch status {
  case .notReachable: "Not Reachable"
  case .reachableViaWWAN: "Reachable via WWAN"
  case .reachableViaWiFi: "Reachable via WiFi"
  case .unknown: "Unknown"
  }
}
