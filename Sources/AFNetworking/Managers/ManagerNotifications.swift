import Foundation

// What the managers post, with the names that Apple's importer gives to AFNetworking's. `object` is the task, or the
// session. Notifications of tasks are posted on the main queue: a program that does not serve it
// hears none.
extension NSNotification.Name {
  /// A task runs, or goes on after it had been suspended.
  public static let AFNetworkingTaskDidResume = NSNotification.Name("com.alamofire.networking.task.resume")

  /// A task is over, and its handler has been called. The user info has what the keys beside this say.
  public static let AFNetworkingTaskDidComplete = NSNotification.Name("com.alamofire.networking.task.complete")

  /// A task stands still.
  public static let AFNetworkingTaskDidSuspend = NSNotification.Name("com.alamofire.networking.task.suspend")

  /// A session has let go of its manager. Posted on the session's queue; the object is the session.
  public static let AFURLSessionDidInvalidate = NSNotification.Name("com.alamofire.networking.session.invalidate")

  /// A download is where it was to be. Posted on the session's queue.
  public static let AFURLSessionDownloadTaskDidMoveFileSuccessfully = NSNotification.Name(
    "com.alamofire.networking.session.download.file-manager-succeed")

  /// A download could not be put where it was to be. Posted on the session's queue; the user info is the error's own,
  /// with the error itself under `NSUnderlyingErrorKey`.
  public static let AFURLSessionDownloadTaskDidFailToMoveFile = NSNotification.Name(
    "com.alamofire.networking.session.download.file-manager-error")
}

/// In the user info of `AFNetworkingTaskDidComplete`: the response's bytes, a `Data`. Not for downloads.
public let AFNetworkingTaskDidCompleteResponseDataKey = "com.alamofire.networking.complete.finish.responsedata"

/// In the user info of `AFNetworkingTaskDidComplete`: what the response serializer has made of the bytes.
public let AFNetworkingTaskDidCompleteSerializedResponseKey =
  "com.alamofire.networking.task.complete.serializedresponse"

/// In the user info of `AFNetworkingTaskDidComplete`: the response serializer.
public let AFNetworkingTaskDidCompleteResponseSerializerKey =
  "com.alamofire.networking.task.complete.responseserializer"

/// In the user info of `AFNetworkingTaskDidComplete`: the `URL` of the file that a download has become.
public let AFNetworkingTaskDidCompleteAssetPathKey = "com.alamofire.networking.task.complete.assetpath"

/// In the user info of `AFNetworkingTaskDidComplete`: why the task or the serializer has failed.
public let AFNetworkingTaskDidCompleteErrorKey = "com.alamofire.networking.task.complete.error"

/// In the user info of `AFNetworkingTaskDidComplete`: the task's `URLSessionTaskMetrics`.
public let AFNetworkingTaskDidCompleteSessionTaskMetrics = "com.alamofire.networking.complete.sessiontaskmetrics"
