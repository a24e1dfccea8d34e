import Foundation

/// The key of `URLError.networkUnavailableReason` in an error's `userInfo`.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"

/// The property of a network because of which the load may not use it.
public enum URLErrorNetworkUnavailableReason: Int, Sendable {
  /// The network is cellular.
  case cellular = 0
  /// The network is expensive.
  case expensive = 1
  /// The network is constrained: programs should use little of it.
  case constrained = 2
}

/// The reason for which the system ended a task of a background session.
public enum URLErrorBackgroundTaskCancelledReason: Int, Sendable {
  /// The user has ended the program.
  case userForceQuitApplication = 0
  /// The user has disabled background tasks.
  case backgroundUpdatesDisabled = 1
  /// The system needed the task's resources.
  case insufficientSystemResources = 2
}

/// The reasons for which settings of other platforms forbid a load. No error of Larkspur has one: Linux does not report
/// which networks are expensive, and ends no tasks in the background.
extension URLError {
  /// The reason for which the network may not be used, or `nil` if the error has another cause.
  public var networkUnavailableReason: NetworkUnavailableReason? {
    (userInfo[NSURLErrorNetworkUnavailableReasonKey] as? Int).flatMap(NetworkUnavailableReason.init)
  }

  /// The reason for which the system has ended the task, or `nil` if the error has another cause.
  public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? {
    (userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] as? Int).flatMap(BackgroundTaskCancelledReason.init)
  }
}
