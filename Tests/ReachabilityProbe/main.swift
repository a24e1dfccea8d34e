// Runs a reachability manager in a process of its own, on a machine whose network comes and goes. Prints each
// status that the block and the notification deliver, one per line, as a program with a main loop receives them:
//
//   ReachabilityProbe anywhere
//   ReachabilityProbe host NAME
//   ReachabilityProbe address A.B.C.D

import AFNetworking
import Foundation

func say(_ words: String) { FileHandle.standardOutput.write(Data((words + "\n").utf8)) }

func makeManager(_ arguments: [String]) -> AFNetworkReachabilityManager? {
  switch (arguments.first, arguments.count) {
  case ("anywhere", 1): return .shared()
  case ("host", 2): return AFNetworkReachabilityManager(forDomain: arguments[1])
  case ("address", 2):
    let numbers = arguments[1].split(separator: ".").compactMap { UInt8($0) }
    return AFNetworkReachabilityManager(forAddress: [2, 0, 0, 80] + numbers + [UInt8](repeating: 0, count: 8))
  default: return nil
  }
}

guard let manager = makeManager(Array(CommandLine.arguments.dropFirst())) else { exit(2) }
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
