import Foundation

/// The key of `URLError.networkUnavailableReason` in an error's `userInfo`.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"

/// Why a load was not allowed, where other platforms' settings forbid it. No error of Larkspur's has these: Linux does not tell
/// which networks are expensive, and ends no program's tasks in the background.
extension URLError {
  /// What a network is, that may not be used.
  public enum NetworkUnavailableReason: Int, Sendable {
    /// By radio.
    case cellular = 0
    /// It costs money.
    case expensive = 1
    /// It is to be spared.
    case constrained = 2
  }

  /// Why a task of a background session was ended.
  public enum BackgroundTaskCancelledReason: Int, Sendable {
    /// By the user, with the program.
    case userForceQuitApplication = 0
    /// The user has switched such tasks off.
    case backgroundUpdatesDisabled = 1
    /// The system needed what they took.
    case insufficientSystemResources = 2
  }

  /// Why the network may not be used. Nil: it is not that.
  public var networkUnavailableReason: NetworkUnavailableReason? {
    (userInfo[NSURLErrorNetworkUnavailableReasonKey] as? Int).flatMap(NetworkUnavailableReason.init)
  }

  /// Why the system has ended the task. Nil: it is not that.
  public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? {
    (userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] as? Int).flatMap(BackgroundTaskCancelledReason.init)
  }
}
