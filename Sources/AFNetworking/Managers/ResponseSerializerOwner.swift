import Larkspur

/// An object with a response serializer. A conforming class can declare the property with a narrower type: that of
/// ``AFHTTPSessionManager`` is an ``AFHTTPResponseSerializer``, whose content types can be changed in place.
/// Objective-C can narrow a property in a subclass; Swift can only if the wider property comes from a protocol.
public protocol AFResponseSerializerOwner: AnyObject {}

extension AFResponseSerializerOwner where Self: AFURLSessionManager {
  /// The serializer that validates responses and makes objects of them, for tasks that end from now on. An
  /// ``AFJSONResponseSerializer`` by default.
  public var responseSerializer: any AFURLResponseSerialization {
    get { storedResponseSerializer }
    set { storedResponseSerializer = newValue }
  }
}
