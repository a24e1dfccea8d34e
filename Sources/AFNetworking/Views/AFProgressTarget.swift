import Foundation
import Larkspur

/// A view that shows a share, as `UIProgressView` with its AFNetworking category.
///
/// The methods are called on the thread of the view. See <doc:Views>.
public protocol AFProgressTarget: AnyObject {
  /// Shows a share from 0 to 1.
  func setProgress(_ progress: Float, animated: Bool)

  /// The view's slot: a constant that the view creates with itself.
  var taskSlot: AFTaskSlot { get }

  /// Shows the share of a task's request body that has been sent, until the task is over. There is a default
  /// implementation.
  func setProgressWithUploadProgressOf(_ task: URLSessionUploadTask, animated: Bool)

  /// Shows the share of a download that has been received, until the task is over. There is a default implementation.
  func setProgressWithDownloadProgressOf(_ task: URLSessionDownloadTask, animated: Bool)

  /// Shows the share of any task's response that has been received, until the task is over. Not in AFNetworking. There
  /// is a default implementation.
  func setProgressWithDownloadProgressOf(_ task: URLSessionTask, animated: Bool)
}

extension AFProgressTarget {
  /// Shows the share of a task's request body that has been sent, until the task is over. The share stays at 0 while the
  /// length of the body is unknown.
  public func setProgressWithUploadProgressOf(_ task: URLSessionUploadTask, animated: Bool) {
    follow(task, animated) { transferShare($0.countOfBytesSent, of: $0.countOfBytesExpectedToSend) }
  }

  /// Shows the share of a download that has been received, until the task is over. The share stays at 0 while the length
  /// of the content is unknown.
  public func setProgressWithDownloadProgressOf(_ task: URLSessionDownloadTask, animated: Bool) {
    setProgressWithDownloadProgressOf(task as URLSessionTask, animated: animated)
  }

  /// Shows the share of any task's response that has been received, until the task is over.
  public func setProgressWithDownloadProgressOf(_ task: URLSessionTask, animated: Bool) {
    follow(task, animated) { transferShare($0.countOfBytesReceived, of: $0.countOfBytesExpectedToReceive) }
  }

  /// See ``setProgressWithUploadProgressOf(_:animated:)``.
  public func setProgressWithUploadProgress(of task: URLSessionUploadTask, animated: Bool) {
    setProgressWithUploadProgressOf(task, animated: animated)
  }

  /// Shows the share of any task's response that has been received, until the task is over.
  public func setProgressWithDownloadProgress(of task: URLSessionTask, animated: Bool) {
    setProgressWithDownloadProgressOf(task, animated: animated)
  }

  private func follow(
    _ task: URLSessionTask, _ animated: Bool, _ share: @escaping @Sendable (URLSessionTask) -> Float
  ) {
    taskSlot.follow(task, share) { [weak self] in self?.setProgress($0, animated: animated) }
  }
}

/// Returns the share of a number of bytes, from 0 to 1; 0 if the expected number is unknown.
func transferShare(_ done: Int64, of expected: Int64) -> Float {
  expected > 0 ? Float(min(max(Double(done) / Double(expected), 0), 1)) : 0
}
