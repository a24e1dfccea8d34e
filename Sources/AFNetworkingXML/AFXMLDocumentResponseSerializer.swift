import AFNetworking
import Foundation
import FoundationXML
import Larkspur
import Synchronization

/// Validates a response, and parses its bytes as an `XMLDocument`.
///
/// `application/xml` and `text/xml` are acceptable by default. On Apple's platforms AFNetworking has this class on
/// macOS only.
open class AFXMLDocumentResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private let storedOptions = Mutex<UInt>(0)

  /// Creates a serializer that accepts XML, and reads without options.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/xml", "text/xml"]
  }

  /// Creates a serializer with reading options.
  ///
  /// - Parameter mask: See ``options``.
  public convenience init(xmlDocumentOptions mask: UInt) {
    self.init()
    options = mask
  }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFXMLDocumentResponseSerializer { AFXMLDocumentResponseSerializer() }

  /// The options for reading the document: a raw value of `XMLNode.Options`. 0 by default.
  ///
  /// External entities are not loaded unless `nodeLoadExternalEntitiesAlways` is set: with this option, a server
  /// decides which files of this machine the document contains.
  open var options: UInt {
    get { storedOptions.withLock { $0 } }
    set { storedOptions.withLock { $0 = newValue } }
  }

  /// Returns an `XMLDocument`, or `nil` if the content type is not acceptable, the body is empty, the bytes are not XML,
  /// or entities and default attributes expand the bytes to more than 1 MB and five times their number. External
  /// entities do not count.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data, !data.isEmpty else { return nil }
    do {
      return try XMLForm.document(of: data, options: XMLNode.Options(rawValue: options))
    } catch let failure {
      store(failure, at: error)
      return nil
    }
  }

  // MARK: - Archives and copies

  private static let key = "options"

  /// Creates a serializer from an archive. Settings that are missing in the archive have the defaults of `init()`,
  /// except ``AFHTTPResponseSerializer/acceptableContentTypes``, which is `nil`.
  public required init?(coder: NSCoder) {
    super.init(coder: coder)
    options = coder.number(forKey: Self.key) ?? 0
  }

  open override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    coder.encode(number: options, forKey: Self.key)
  }

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = super.copy(with: zone)
    (copy as? AFXMLDocumentResponseSerializer)?.options = options
    return copy
  }
}
