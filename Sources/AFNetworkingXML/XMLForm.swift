import Foundation
import FoundationXML

/// Whether bytes are a well-formed document.
enum XMLForm {
  /// - Throws: An `NSError` of `XMLParser.errorDomain`.
  static func check(_ data: Data) throws {
    let parser = XMLParser(data: data)
    let depth = Depth()
    parser.delegate = depth
    guard parser.parse() else { throw parser.parserError ?? depth.error }
    // The parser is content with a document that is cut.
    guard depth.hasRoot, depth.open == 0 else { throw depth.error }
  }

  private final class Depth: NSObject, XMLParserDelegate {
    var open = 0
    var hasRoot = false

    var error: NSError {
      NSError(domain: XMLParser.errorDomain, code: XMLParser.ErrorCode.prematureDocumentEndError.rawValue)
    }

    func parser(
      _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName qName: String?,
      attributes attributeDict: [String: String]
    ) {
      open += 1
      hasRoot = true
    }

    func parser(
      _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName qName: String?
    ) { open -= 1 }
  }
}
