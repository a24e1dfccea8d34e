// A reachability manager on a machine whose network comes and goes. Prints each status that the block and the
// notification deliver, one per line, as a program with a main loop receives them, until it is killed:
//
//   TestHelper reachability anywhere
//   TestHelper reachability host NAME
//   TestHelper reachability address A.B.C.D

import AFNetworking
import Foundation

private func makeManager(_ arguments: [String]) -> AFNetworkReachabilityManager? {
  switch (arguments.first, arguments.count) {
  case ("anywhere", 1): return .shared()
  case ("host", 2): return AFNetworkReachabilityManager(forDomain: arguments[1])
  case ("address", 2):
    let numbers = arguments[1].split(separator: ".").compactMap { UInt8($0) }
    return AFNetworkReachabilityManager(forAddress: [2, 0, 0, 80] + numbers + [UInt8](repeating: 0, count: 8))
  default: return nil
  }
}

func runReachability(_ arguments: [String]) throws {
  guard let manager = makeManager(arguments) else { throw Failure.wrongArguments }
  manager.setReachabilityStatusChange { status in say("block: \(AFStringFromNetworkReachabilityStatus(status))") }
  let token = NotificationCenter.default.addObserver(
    forName: .AFNetworkingReachabilityDidChange, object: manager, queue: nil
  ) { notification in
    let number = notification.userInfo?[AFNetworkingReachabilityNotificationStatusItem] as? Int
    let status = number.flatMap { AFNetworkReachabilityStatus(rawValue: $0) }
    say("notification: \(status.map(AFStringFromNetworkReachabilityStatus) ?? "none")")
  }
  manager.startMonitoring()
  RunLoop.main.run()
  withExtendedLifetime(token) {}
}
