import Larkspur

/// What has a response serializer. A class of its own kind has it in a narrower type: ``AFHTTPSessionManager``'s is an
/// ``AFHTTPResponseSerializer``, whose content types can be changed in place. Objective-C narrows a property in a
/// subclass; Swift does so where the wider one comes from a protocol.
public protocol AFResponseSerializerOwner: AnyObject {}

extension AFResponseSerializerOwner where Self: AFURLSessionManager {
  /// What makes something useful of responses, for tasks that end from now on. From the beginning an
  /// ``AFJSONResponseSerializer``.
  public var responseSerializer: any AFURLResponseSerialization {
    get { storedResponseSerializer }
    set { storedResponseSerializer = newValue }
  }
}
