import AFNetworking
import Foundation
import FoundationXML
import Larkspur

/// Validates a response, and returns an `XMLParser` for its bytes: the program sets a delegate and parses.
///
/// `application/xml` and `text/xml` are acceptable by default.
open class AFXMLParserResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  /// Creates a serializer that accepts XML.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/xml", "text/xml"]
  }

  /// Creates a serializer from an archive. Settings that are missing in the archive have the defaults of `init()`,
  /// except ``AFHTTPResponseSerializer/acceptableContentTypes``, which is `nil`.
  public required init?(coder: NSCoder) { super.init(coder: coder) }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFXMLParserResponseSerializer { AFXMLParserResponseSerializer() }

  /// Returns an `XMLParser`, or `nil` if the content type is not acceptable, there are no bytes, or entities and default
  /// attributes expand the bytes to more than 1 MB and five times their number. Parsing shows whether the bytes are XML.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data else { return nil }
    do {
      try XMLExpansion.check(data)
    } catch let failure {
      store(failure, at: error)
      return nil
    }
    return XMLParser(data: data)
  }
}
