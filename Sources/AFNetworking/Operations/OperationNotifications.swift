import Foundation

extension NSNotification.Name {
  /// A request operation has started to load, for the first time or after a pause. The object is the operation. Posted
  /// on the main queue: not seen by a program whose main thread does not serve this queue.
  public static let AFNetworkingOperationDidStart = NSNotification.Name("com.alamofire.networking.operation.start")

  /// A request operation has finished, or has been paused during a load. The object is the operation. Posted on the
  /// main queue.
  public static let AFNetworkingOperationDidFinish = NSNotification.Name("com.alamofire.networking.operation.finish")
}

/// AFNetworking's Objective-C name of `NSNotification.Name.AFNetworkingOperationDidStart`.
public let AFNetworkingOperationDidStartNotification = NSNotification.Name.AFNetworkingOperationDidStart
/// AFNetworking's Objective-C name of `NSNotification.Name.AFNetworkingOperationDidFinish`.
public let AFNetworkingOperationDidFinishNotification = NSNotification.Name.AFNetworkingOperationDidFinish

extension AFURLConnectionOperation {
  func post(_ name: NSNotification.Name) {
    NotificationOutbox.main.post(name, self, keeping: read { $0.responseData?.count ?? 0 })
  }
}
