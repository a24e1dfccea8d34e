import Foundation
import Larkspur
import Synchronization

/// Tries its serializers in order, and returns the first object that one of them makes. If none makes an object,
/// returns the response's bytes, validated as ``AFHTTPResponseSerializer`` does.
open class AFCompoundResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private let serializers = Mutex(Serializers())

  /// Serializers need not be `Sendable`. Managers call them on their own queues: see ``AFURLResponseSerialization``.
  private struct Serializers: @unchecked Sendable {
    var list: [any AFURLResponseSerialization] = []
  }

  /// Creates a serializer with an empty list of serializers.
  public override init() { super.init() }

  /// Creates a serializer that tries the given serializers.
  ///
  /// - Parameter responseSerializers: See ``responseSerializers``.
  public class func compoundSerializer(
    withResponseSerializers responseSerializers: [any AFURLResponseSerialization]
  ) -> AFCompoundResponseSerializer {
    let serializer = AFCompoundResponseSerializer()
    let serializers = Serializers(list: responseSerializers)
    serializer.serializers.withLock { $0 = serializers }
    return serializer
  }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFCompoundResponseSerializer { AFCompoundResponseSerializer() }

  /// The serializers to try, in this order. Elements that are not an ``AFHTTPResponseSerializer`` are skipped, as in
  /// AFNetworking.
  open var responseSerializers: [any AFURLResponseSerialization] { serializers.withLock { $0 }.list }

  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    for case let serializer as AFHTTPResponseSerializer in responseSerializers {
      var failure: NSError?
      guard let object = serializer.responseObject(for: response, data: data, error: &failure) else { continue }
      if let failure { store(failure, at: error) }
      return object
    }
    return super.responseObject(for: response, data: data, error: error)
  }

  // MARK: - Archives and copies

  private static let key = "responseSerializers"

  /// Creates a serializer from an archive. Settings that are missing in the archive have the defaults of `init()`.
  public required init?(coder: NSCoder) {
    super.init(coder: coder)
    guard let list = coder.object(NSArray.self, with: [AFHTTPResponseSerializer.self], forKey: Self.key) else { return }
    let objects = list as? [Any]
    let decoded = Serializers(list: (objects ?? []).compactMap { $0 as? any AFURLResponseSerialization })
    serializers.withLock { $0 = decoded }
  }

  open override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    coder.encode(responseSerializers.compactMap { $0 as? AFHTTPResponseSerializer }, forKey: Self.key)
  }

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = super.copy(with: zone)
    let serializers = serializers.withLock { $0 }
    (copy as? AFCompoundResponseSerializer)?.serializers.withLock { $0 = serializers }
    return copy
  }
}
