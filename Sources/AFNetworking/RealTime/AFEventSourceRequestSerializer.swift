import Foundation
import Larkspur

/// Creates requests for event streams: an ``AFHTTPRequestSerializer`` whose requests accept `text/event-stream` only.
open class AFEventSourceRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  /// Creates a serializer with the default settings.
  public override init() { super.init() }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFEventSourceRequestSerializer { AFEventSourceRequestSerializer() }

  /// Creates a serializer from an archive.
  public required init?(coder decoder: NSCoder) { super.init(coder: decoder) }

  override func blank() -> AFHTTPRequestSerializer? {
    type(of: self) == AFEventSourceRequestSerializer.self ? AFEventSourceRequestSerializer() : super.blank()
  }

  open override func request(
    bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
  ) -> URLRequest? {
    var result = super.request(bySerializingRequest: request, withParameters: parameters, error: error)
    result?.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    return result
  }
}
