import Foundation
import Larkspur

/// Validates a response, and parses its bytes as one message of an event stream: an ``AFServerSentEvent``.
///
/// `text/event-stream` is acceptable by default. The serializer is for a program that has the bytes of a message.
/// ``AFEventSource`` reads its stream as the bytes arrive, and does not need a serializer.
open class AFServerSentEventResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  /// Creates a serializer.
  public override init() {
    super.init()
    acceptableContentTypes = ["text/event-stream"]
  }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFServerSentEventResponseSerializer { AFServerSentEventResponseSerializer() }

  /// Returns the first message, or `nil` if the bytes have no message or the response is not acceptable.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    do {
      try validate(response as? HTTPURLResponse, data: data)
    } catch let failure {
      error?.pointee = failure as NSError
      return nil
    }
    return data.flatMap { EventFields.first(in: $0) }.map { AFServerSentEvent(fields: $0) }
  }

  /// Creates a serializer from an archive.
  public required init?(coder: NSCoder) { super.init(coder: coder) }
}
