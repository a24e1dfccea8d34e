import Foundation
import Larkspur

/// Validates a response, and parses its bytes as a JSON Patch (RFC 6902): an array of ``AFJSONPatchOperation``.
///
/// `application/json-patch+json` is acceptable by default. An invalid operation makes the whole patch invalid (section
/// 5); AFRocketClient leaves it out. ``AFJSONResponseSerializer/removesKeysWithNullValues`` has no effect: in a patch,
/// a null is a value.
open class AFJSONPatchResponseSerializer: AFJSONResponseSerializer, @unchecked Sendable {
  /// Creates a serializer that reads without options.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/json-patch+json"]
  }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFJSONPatchResponseSerializer { AFJSONPatchResponseSerializer() }

  /// Returns the operations, or `nil` with an ``AFJSONPatchError`` if the bytes are JSON, but not a patch.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard let document = json(for: response, data: data, error: error, keepsNulls: true) else { return nil }
    do {
      return try AFJSONPatchOperation.operations(withPatch: document)
    } catch let failure {
      store(failure, at: error)
      return nil
    }
  }

  /// Creates a serializer from an archive.
  public required init?(coder: NSCoder) { super.init(coder: coder) }
}
