import AFNetworking
import Foundation
import FoundationXML
import Larkspur

/// Validates a response, and gives an `XMLParser` of its bytes: the program sets a delegate and parses.
///
/// `application/xml` and `text/xml` are acceptable at first.
open class AFXMLParserResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  /// Accepts XML.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/xml", "text/xml"]
  }

  /// Reads an archive of this class. What is missing there is as `init()` has it.
  public required init?(coder: NSCoder) { super.init(coder: coder) }

  /// The same as `init()`.
  open override class func serializer() -> AFXMLParserResponseSerializer { AFXMLParserResponseSerializer() }

  /// An `XMLParser`. Whether the bytes are XML is known when it parses.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data else { return nil }
    return XMLParser(data: data)
  }
}
