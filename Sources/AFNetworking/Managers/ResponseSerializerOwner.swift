import Larkspur

/// An object with a response serializer. The property is in an extension of this protocol, so that a class can declare
/// the property again with a narrower type: ``AFHTTPSessionManager`` has an ``AFHTTPResponseSerializer``, whose content
/// types can be changed in place. In Objective-C a subclass can narrow an inherited property. In Swift that is possible
/// only if the wider property comes from a protocol.
public protocol AFResponseSerializerOwner: AnyObject {}

extension AFResponseSerializerOwner where Self: AFURLSessionManager {
  /// The serializer that validates responses and makes objects of them, for tasks that end from now on. An
  /// ``AFJSONResponseSerializer`` by default.
  public var responseSerializer: any AFURLResponseSerialization {
    get { storedResponseSerializer }
    set { storedResponseSerializer = newValue }
  }
}
