import Dispatch
import Foundation
import TestKit
import Testing

@testable import AFNetworking

/// Tests of reachability that need only the loopback interface. Changes of the network are tested elsewhere, in network
/// namespaces.
@Suite(.timeLimit(.minutes(1))) struct ReachabilityTests {
  /// The statuses that a manager reports, in order.
  struct Report {
    let statuses: AsyncStream<AFNetworkReachabilityStatus>

    init(_ manager: AFNetworkReachabilityManager) {
      let (stream, continuation) = AsyncStream.makeStream(of: AFNetworkReachabilityStatus.self)
      statuses = stream
      manager.setReachabilityStatusChange { continuation.yield($0) }
    }

    func first() async -> AFNetworkReachabilityStatus? { await statuses.first { _ in true } }
  }

  static func loopback() -> AFNetworkReachabilityManager {
    // A `sockaddr_in` of `AF_INET`, port 80, 127.0.0.1.
    let address: [UInt8] = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    return AFNetworkReachabilityManager(forAddress: address)
  }

  @Test(arguments: ["localhost", "127.0.0.1", "::1", "LOCALHOST."]) func domains(_ domain: String) async throws {
    let manager = AFNetworkReachabilityManager(forDomain: domain)
    #expect(manager.networkReachabilityStatus == .unknown && !manager.isReachable)
    #expect(manager.localizedNetworkReachabilityStatusString() == "Unknown")
    let reports = Report(manager)
    manager.startMonitoring()
    #expect(await reports.first() == .reachableViaWiFi)
    #expect(manager.isReachable && manager.isReachableViaWiFi && !manager.isReachableViaWWAN)
    #expect(manager.localizedNetworkReachabilityStatusString() == "Reachable via WiFi")
    manager.stopMonitoring()
    #expect(manager.networkReachabilityStatus == .reachableViaWiFi)
  }

  @Test(arguments: ["", "a b", "no.such.invalid", "a..b"]) func noDomains(_ domain: String) async throws {
    let manager = AFNetworkReachabilityManager(forDomain: domain)
    let reports = Report(manager)
    manager.startMonitoring()
    #expect(await reports.first() == .notReachable)
    #expect(!manager.isReachable)
  }

  @Test func addresses() async throws {
    let manager = Self.loopback()
    let reports = Report(manager)
    manager.startMonitoring()
    #expect(await reports.first() == .reachableViaWiFi)
    let six = AFNetworkReachabilityManager(forAddress: [10, 0] + [UInt8](repeating: 0, count: 21) + [1, 0, 0, 0, 0])
    let report6 = Report(six)
    six.startMonitoring()
    #expect(await report6.first() == .reachableViaWiFi)
    let other = AFNetworkReachabilityManager(forAddress: [1, 0] as [UInt8])
    let reportOther = Report(other)
    other.startMonitoring()
    #expect(await reportOther.first() == .notReachable)
  }

  @Test func theNotification() async throws {
    let manager = Self.loopback()
    let (stream, continuation) = AsyncStream.makeStream(of: Int?.self)
    let token = NotificationCenter.default.addObserver(
      forName: .AFNetworkingReachabilityDidChange, object: manager, queue: nil
    ) { notification in
      let value = notification.userInfo?[AFNetworkingReachabilityNotificationStatusItem]
      continuation.yield((value as? NSNumber)?.intValue)
    }
    defer { NotificationCenter.default.removeObserver(token) }
    manager.startMonitoring()
    #expect(await stream.first { _ in true } == .some(2))
    let name = NSNotification.Name.AFNetworkingReachabilityDidChange.rawValue
    #expect(name == "com.alamofire.networking.reachability.change")
    #expect(AFNetworkingReachabilityNotificationStatusItem == "AFNetworkingReachabilityNotificationStatusItem")
  }

  /// Each call of `startMonitoring` reports the status once, on the queue that the program has set.
  @Test func startsAndQueues() async throws {
    let manager = Self.loopback()
    #expect(manager.callbackQueue.label == DispatchQueue.main.label)
    let queue = DispatchQueue(label: "callbacks")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    manager.callbackQueue = queue
    let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
    manager.setReachabilityStatusChange { _ in continuation.yield(DispatchQueue.getSpecific(key: key) == true) }
    var reports = stream.makeAsyncIterator()
    for _ in 0..<3 {
      manager.startMonitoring()
      #expect(await reports.next() == true)
    }
  }

  /// A report that is still queued when the manager is stopped is dropped.
  @Test func aStoppedManagerIsSilent() async throws {
    let manager = Self.loopback()
    let queue = DispatchQueue(label: "callbacks", attributes: .initiallyInactive)
    manager.callbackQueue = queue
    let calls = Calls()
    manager.setReachabilityStatusChange { _ in calls.add() }
    manager.startMonitoring()
    let later = Self.loopback()
    let reports = Report(later)
    later.startMonitoring()
    #expect(await reports.first() != nil)
    manager.stopMonitoring()
    queue.activate()
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    #expect(calls.count == 0)
  }

  @Test func aManagerGoesWhileItWatches() async {
    weak var gone: AFNetworkReachabilityManager?
    do {
      let manager = Self.loopback()
      manager.startMonitoring()
      gone = manager
    }
    // A check in progress keeps the manager alive for a moment.
    await Wait.until("the manager is released") { gone == nil }
  }

  /// Replacing a block releases the owner that it captured. The owner's `deinit` can stop the manager.
  @Test func anOwnerGoesWithItsBlock() {
    let manager = Self.loopback()
    let calls = Calls()
    for isFollowed in [true, false] {
      let owner = DeinitObserver {
        manager.stopMonitoring()
        manager.setReachabilityStatusChange(nil)
        calls.add()
      }
      manager.setReachabilityStatusChange { _ in withExtendedLifetime(owner) {} }
      if isFollowed { manager.setReachabilityStatusChange { _ in } }
    }
    manager.setReachabilityStatusChange(nil)
    #expect(calls.count == 2)
  }

  @Test func sharedAndWords() {
    #expect(AFNetworkReachabilityManager.shared() === AFNetworkReachabilityManager.shared())
    #expect(AFNetworkReachabilityManager() !== AFNetworkReachabilityManager.manager())
    #expect(AFStringFromNetworkReachabilityStatus(.notReachable) == "Not Reachable")
    #expect(AFStringFromNetworkReachabilityStatus(.reachableViaWWAN) == "Reachable via WWAN")
    #expect(AFNetworkReachabilityStatus(rawValue: -1) == .unknown)
    #expect(AFNetworkReachabilityStatus.reachableViaWWAN.rawValue == 1)
    for kind in [.loopback, .wired, .wireless, .other] as [NetworkReachability.LinkKind] {
      #expect(AFNetworkReachabilityStatus(.reachable(kind)) == .reachableViaWiFi)
    }
    #expect(AFNetworkReachabilityStatus(.reachable(.cellular)) == .reachableViaWWAN)
    #expect(AFNetworkReachabilityStatus(.unreachable) == .notReachable)
    #expect(AFNetworkReachabilityStatus(.unknown) == .unknown)
  }

  @Test func systemConfigurationsName() async throws {
    let reachability = try #require(SCNetworkReachabilityCreateWithName(nil, "localhost"))
    let manager = AFNetworkReachabilityManager(reachability: reachability)
    let reports = Report(manager)
    manager.startMonitoring()
    #expect(await reports.first() == .reachableViaWiFi)
    #expect(await reachability.paths.first { _ in true } == .reachable(.loopback))
    #expect(NetworkReachability(socketAddress: Data([2, 0, 0, 80])) == nil)
    #expect(NetworkReachability(socketAddress: Data(repeating: 1, count: 28)) == nil)
  }
}

private final class Calls: @unchecked Sendable {
  private let lock = NSLock()
  private var number = 0

  var count: Int { lock.withLock { number } }

  func add() { lock.withLock { number += 1 } }
}
