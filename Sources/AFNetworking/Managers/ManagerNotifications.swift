import Foundation

// The managers' notifications, with the names that Apple's importer gives to those of AFNetworking. The object is the
// task or the session. Notifications of tasks are posted on the main queue: a program that does not serve this queue
// receives none.
extension NSNotification.Name {
  /// A task has been resumed, for the first time or after a suspension.
  public static let AFNetworkingTaskDidResume = NSNotification.Name("com.alamofire.networking.task.resume")

  /// A task is over, and its handler has been called. See the `AFNetworkingTaskDidComplete...` keys for the user info.
  public static let AFNetworkingTaskDidComplete = NSNotification.Name("com.alamofire.networking.task.complete")

  /// A task has been suspended.
  public static let AFNetworkingTaskDidSuspend = NSNotification.Name("com.alamofire.networking.task.suspend")

  /// A session has released its manager. Posted on the session's queue; the object is the session.
  public static let AFURLSessionDidInvalidate = NSNotification.Name("com.alamofire.networking.session.invalidate")

  /// A download's file has been moved to its destination. Posted on the session's queue.
  public static let AFURLSessionDownloadTaskDidMoveFileSuccessfully = NSNotification.Name(
    "com.alamofire.networking.session.download.file-manager-succeed")

  /// A download's file could not be moved to its destination. Posted on the session's queue; the user info is the
  /// error's own, with the error itself under `NSUnderlyingErrorKey`.
  public static let AFURLSessionDownloadTaskDidFailToMoveFile = NSNotification.Name(
    "com.alamofire.networking.session.download.file-manager-error")
}

/// The key for the response's bytes, a `Data`, in the user info of `AFNetworkingTaskDidComplete`. Not for downloads.
public let AFNetworkingTaskDidCompleteResponseDataKey = "com.alamofire.networking.complete.finish.responsedata"

/// The key for the response serializer's object in the user info of `AFNetworkingTaskDidComplete`.
public let AFNetworkingTaskDidCompleteSerializedResponseKey =
  "com.alamofire.networking.task.complete.serializedresponse"

/// The key for the response serializer in the user info of `AFNetworkingTaskDidComplete`.
public let AFNetworkingTaskDidCompleteResponseSerializerKey =
  "com.alamofire.networking.task.complete.responseserializer"

/// The key for the `URL` of a download's file in the user info of `AFNetworkingTaskDidComplete`.
public let AFNetworkingTaskDidCompleteAssetPathKey = "com.alamofire.networking.task.complete.assetpath"

/// The key for the error of the task or the serializer in the user info of `AFNetworkingTaskDidComplete`.
public let AFNetworkingTaskDidCompleteErrorKey = "com.alamofire.networking.task.complete.error"

/// The key for the task's `URLSessionTaskMetrics` in the user info of `AFNetworkingTaskDidComplete`.
public let AFNetworkingTaskDidCompleteSessionTaskMetrics = "com.alamofire.networking.complete.sessiontaskmetrics"
