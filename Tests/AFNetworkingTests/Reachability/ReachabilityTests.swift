import Dispatch
import Foundation
import Testing

@testable import AFNetworking

/// What needs no network but loopback. A network that comes and goes is tested where there are namespaces.
@Suite(.timeLimit(.minutes(1))) struct ReachabilityTests {
  /// What a manager tells, one after the other.
  struct Told {
    let statuses: AsyncStream<AFNetworkReachabilityStatus>

    init(_ manager: AFNetworkReachabilityManager) {
      let (stream, continuation) = AsyncStream.makeStream(of: AFNetworkReachabilityStatus.self)
      statuses = stream
      manager.setReachabilityStatusChange { continuation.yield($0) }
    }

    func first() async -> AFNetworkReachabilityStatus? { await statuses.first { _ in true } }
  }

  static func loopback() -> AFNetworkReachabilityManager {
    // AF_INET, port 80, 127.0.0.1.
    let address: [UInt8] = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    return AFNetworkReachabilityManager(forAddress: address)
  }

  @Test(arguments: ["localhost", "127.0.0.1", "::1", "LOCALHOST."]) func domains(_ domain: String) async throws {
    let manager = AFNetworkReachabilityManager(forDomain: domain)
    #expect(manager.networkReachabilityStatus == .unknown && !manager.isReachable)
    #expect(manager.localizedNetworkReachabilityStatusString() == "Unknown")
    let told = Told(manager)
    manager.startMonitoring()
    #expect(await told.first() == .reachableViaWiFi)
    #expect(manager.isReachable && manager.isReachableViaWiFi && !manager.isReachableViaWWAN)
    #expect(manager.localizedNetworkReachabilityStatusString() == "Reachable via WiFi")
    manager.stopMonitoring()
    #expect(manager.networkReachabilityStatus == .reachableViaWiFi)
  }

  @Test(arguments: ["", "a b", "no.such.invalid", "a..b"]) func noDomains(_ domain: String) async throws {
    let manager = AFNetworkReachabilityManager(forDomain: domain)
    let told = Told(manager)
    manager.startMonitoring()
    #expect(await told.first() == .notReachable)
    #expect(!manager.isReachable)
  }

  @Test func addresses() async throws {
    let manager = Self.loopback()
    let told = Told(manager)
    manager.startMonitoring()
    #expect(await told.first() == .reachableViaWiFi)
    let six = AFNetworkReachabilityManager(forAddress: [10, 0] + [UInt8](repeating: 0, count: 21) + [1, 0, 0, 0, 0])
    let told6 = Told(six)
    six.startMonitoring()
    #expect(await told6.first() == .reachableViaWiFi)
    let other = AFNetworkReachabilityManager(forAddress: [1, 0] as [UInt8])
    let toldOther = Told(other)
    other.startMonitoring()
    #expect(await toldOther.first() == .notReachable)
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

  /// Each start tells once, on the queue that the program has set.
  @Test func startsAndQueues() async throws {
    let manager = Self.loopback()
    #expect(manager.callbackQueue.label == DispatchQueue.main.label)
    let queue = DispatchQueue(label: "callbacks")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    manager.callbackQueue = queue
    let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
    manager.setReachabilityStatusChange { _ in continuation.yield(DispatchQueue.getSpecific(key: key) == true) }
    var told = stream.makeAsyncIterator()
    for _ in 0..<3 {
      manager.startMonitoring()
      #expect(await told.next() == true)
    }
  }

  /// What is on its way when it is stopped is not told.
  @Test func aStoppedManagerIsSilent() async throws {
    let manager = Self.loopback()
    let queue = DispatchQueue(label: "callbacks", attributes: .initiallyInactive)
    manager.callbackQueue = queue
    let calls = Calls()
    manager.setReachabilityStatusChange { _ in calls.add() }
    manager.startMonitoring()
    let later = Self.loopback()
    let told = Told(later)
    later.startMonitoring()
    #expect(await told.first() != nil)
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
    // A look that is on its way holds on to it for a moment.
    while gone != nil { await Task.yield() }
  }

  /// A block that is let go of takes its owner with it, who stops the manager on his way.
  @Test func anOwnerGoesWithItsBlock() {
    let manager = Self.loopback()
    let calls = Calls()
    for isFollowed in [true, false] {
      let owner = Parting {
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
    let told = Told(manager)
    manager.startMonitoring()
    #expect(await told.first() == .reachableViaWiFi)
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
