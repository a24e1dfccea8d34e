import Foundation
import FoundationXML

/// Reading of documents.
enum XMLForm {
  /// Foundation on Linux reads external entities as they come, files of this machine too, and makes a document of whatever
  /// it can read. On Darwin bytes without an address have no entities of elsewhere, and have to be well-formed.
  ///
  /// - Throws: An `NSError` of `XMLParser.errorDomain` if it is none.
  static func document(of data: Data, options: XMLNode.Options = []) throws -> XMLDocument {
    var options = options
    if !options.contains(.nodeLoadExternalEntitiesAlways) { options.insert(.nodeLoadExternalEntitiesNever) }
    if options.isDisjoint(with: [.documentTidyXML, .documentTidyHTML]) { try check(data) }
    return try XMLDocument(data: data, options: options)
  }

  /// Whether bytes are a well-formed document.
  private static func check(_ data: Data) throws {
    let parser = XMLParser(data: data)
    let depth = Depth()
    parser.delegate = depth
    let isParsed = parser.parse()
    // It may say that it has parsed, and have an error: of a second root, for one.
    if let error = parser.parserError { throw error }
    // It is content with a document that is cut.
    guard isParsed, depth.hasRoot, depth.open == 0 else { throw depth.error }
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
