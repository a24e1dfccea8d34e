import Foundation
import FoundationXML

/// Parses documents.
enum XMLForm {
  /// Parses a document as Darwin does: it must be well-formed, and external entities are not loaded unless the options
  /// ask for this. Foundation on Linux loads external entities by default, even files of this machine, and accepts
  /// whatever part of a document it can read.
  ///
  /// - Throws: An `NSError` of `XMLParser.errorDomain` if the bytes are not a document, or expand too far.
  static func document(of data: Data, options: XMLNode.Options = []) throws -> XMLDocument {
    try XMLExpansion.check(data)
    var options = options
    if !options.contains(.nodeLoadExternalEntitiesAlways) { options.insert(.nodeLoadExternalEntitiesNever) }
    if options.isDisjoint(with: [.documentTidyXML, .documentTidyHTML]) { try check(data) }
    return try XMLDocument(data: data, options: options)
  }

  /// Throws unless the bytes are a well-formed document. The tidy options accept other documents, so
  /// `document(of:options:)` then skips this check.
  private static func check(_ data: Data) throws {
    let parser = XMLParser(data: data)
    let depth = Depth()
    parser.delegate = depth
    let isParsed = parser.parse()
    // `parse()` can return `true` and still report an error, for example for a second root element.
    if let error = parser.parserError { throw error }
    // `parse()` accepts a truncated document.
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
