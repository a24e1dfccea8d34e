import AFNetworking
import Foundation
import FoundationXML
import Larkspur
import Synchronization

/// Validates a response, and reads its bytes as an `XMLDocument`.
///
/// `application/xml` and `text/xml` are acceptable at first. On Darwin it exists on the Mac only.
open class AFXMLDocumentResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private let storedOptions = Mutex<UInt>(0)

  /// Accepts XML, and reads without options.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/xml", "text/xml"]
  }

  /// - Parameter mask: See ``options``.
  public convenience init(xmlDocumentOptions mask: UInt) {
    self.init()
    options = mask
  }

  /// The same as `init()`.
  open override class func serializer() -> AFXMLDocumentResponseSerializer { AFXMLDocumentResponseSerializer() }

  /// How the document is read: a raw value of `XMLNode.Options`. 0 at first.
  ///
  /// External entities are left alone, unless `nodeLoadExternalEntitiesAlways` is set: with it a server decides which files
  /// of this machine the document shows.
  open var options: UInt {
    get { storedOptions.withLock { $0 } }
    set { storedOptions.withLock { $0 = newValue } }
  }

  /// An `XMLDocument`.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data, !data.isEmpty else { return nil }
    do {
      return try XMLForm.document(of: data, options: XMLNode.Options(rawValue: options))
    } catch let failure {
      leave(failure, at: error)
      return nil
    }
  }

  // MARK: - Archives and copies

  private static let key = "options"

  /// Reads an archive of this class. What is missing there is as `init()` has it.
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
