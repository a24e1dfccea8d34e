import Foundation
import Larkspur
import Synchronization

/// Asks one serializer after the other, and gives what the first one makes of the bytes; if none does, the bytes themselves,
/// validated as ``AFHTTPResponseSerializer`` does.
open class AFCompoundResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private let serializers = Mutex(Serializers())

  /// Serializers need not be `Sendable`, and managers call them on queues of their own: see the protocol.
  private struct Serializers: @unchecked Sendable {
    var list: [any AFURLResponseSerialization] = []
  }

  /// Without a serializer to ask.
  public override init() { super.init() }

  /// - Parameter responseSerializers: See ``responseSerializers``.
  public class func compoundSerializer(
    withResponseSerializers responseSerializers: [any AFURLResponseSerialization]
  ) -> AFCompoundResponseSerializer {
    let serializer = AFCompoundResponseSerializer()
    let serializers = Serializers(list: responseSerializers)
    serializer.serializers.withLock { $0 = serializers }
    return serializer
  }

  /// The same as `init()`.
  open override class func serializer() -> AFCompoundResponseSerializer { AFCompoundResponseSerializer() }

  /// Who is asked, in this order. Those that are no ``AFHTTPResponseSerializer`` are passed over, as in AFNetworking.
  open var responseSerializers: [any AFURLResponseSerialization] { serializers.withLock { $0 }.list }

  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    for case let serializer as AFHTTPResponseSerializer in responseSerializers {
      var failure: NSError?
      guard let object = serializer.responseObject(for: response, data: data, error: &failure) else { continue }
      if let failure { leave(failure, at: error) }
      return object
    }
    return super.responseObject(for: response, data: data, error: error)
  }

  // MARK: - Archives and copies

  private static let key = "responseSerializers"

  /// Reads an archive of this class. What is missing there is as `init()` has it.
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
