import Foundation
import FoundationXML
import Testing

@testable import AFNetworkingXML

/// Tests the limit on the size to which the declarations of an XML document expand it.
@Suite struct XMLExpansionTests {
  /// The code of the error for a document, or `nil` if the document is within the limits.
  private func code(_ data: Data) -> XMLParser.ErrorCode? {
    do {
      try XMLExpansion.check(data)
      return nil
    } catch {
      return XMLParser.ErrorCode(rawValue: (error as NSError).code)
    }
  }

  private func code(_ text: String) -> XMLParser.ErrorCode? { code(Data(text.utf8)) }

  private static func xs(_ count: Int) -> String { String(repeating: "x", count: count) }

  /// Documents that a parser expands to at least 10 MB.
  static let bombs: [String: String] = {
    let many = { (text: String) in String(repeating: text, count: 1000) }
    let document = { (declarations: String, content: String) in "<!DOCTYPE r [\(declarations)]><r>\(content)</r>" }
    return [
      "text": document("<!ENTITY a '\(xs(10_000))'>", many("&a;")),
      "elements": document("<!ENTITY a '\(many("<b/><b/>"))'>", many("&a;&a;")),
      "empty elements in a value": document(
        "<!ENTITY a '\(many("<b/>"))'><!ATTLIST b c CDATA '\(xs(1000))'>", many("&a;")),
      "attributes": document("<!ENTITY a '\(xs(10_000))'>", many("<c d='&a;'/>")),
      "one attribute": document("<!ENTITY a '\(xs(10_000))'>", "<c d='\(many("&a;"))'/>"),
      "levels": document("<!ENTITY a '\(xs(10_000))'><!ENTITY b '\(many("&a;"))'>", "&b;"),
      "levels in reverse": document("<!ENTITY b '\(many("&a;"))'><!ENTITY a '\(xs(10_000))'>", "&b;"),
      "references to characters": document("<!ENTITY a '\(xs(10_000))'><!ENTITY b '\(many("&#38;a;"))'>", "&b;"),
      "hexadecimal": document("<!ENTITY a '\(xs(10_000))'><!ENTITY b '\(many("&#x0026;a;"))'>", "&b;"),
      "elements by characters": document(
        "<!ENTITY a '\(many("&#60;c/>"))'><!ATTLIST c d CDATA '\(xs(1000))'>", many("&a;")),
      "default attributes": document("<!ATTLIST c d CDATA '\(xs(10_000))'>", many("<c/>")),
      "names of default attributes": document("<!ATTLIST c \(many("d CDATA 'x' "))>", many("<c e='1'></c>")),
      "a comment before": document("<!-- <!ENTITY a ''> --><!ENTITY a '\(xs(10_000))'>", many("&a;")),
      "a comment with a quotation mark": document("<!-- <!ENTITY z ' --><!ENTITY a '\(xs(10_000))'>", many("&a;")),
      "space": document("<!ENTITY\n\ta\r\n\"\(xs(10_000))\"\n>", many("&a;")),
      "a parameter entity": document("<!ENTITY % p \"<!ENTITY a '\(xs(10_000))'>\">%p;", many("&a;")),
      "a parameter entity by characters": document("<!ENTITY % p \"&#60;!ENTITY a '\(xs(10_000))'>\">%p;", many("&a;")),
      "without space": document("<!ENTITYa'\(xs(10_000))'>", many("&a;")),
      "a name that is not ASCII": document("<!ENTITY дa '\(xs(10_000))'>", many("&дa;")),
      "a start tag with an error": document("<!ATTLIST c d CDATA '\(xs(10_000))'>", many("<c×/>") + many("<c@>")),
      "itself": document("<!ENTITY a '&b;'><!ENTITY b '&a;'>", "&a;"),
      "many levels": document((1...100).map { "<!ENTITY a\($0) '&a\($0 - 1);'>" }.joined(), "&a100;"),
    ]
  }()

  @Test(arguments: bombs.keys.sorted()) func tooLarge(name: String) throws {
    let text = try #require(Self.bombs[name])
    #expect(text.utf8.count < 150_000 && code(text) == .entityRefLoopError)
    #expect(code("<?xml version='1.0' encoding='UTF-8'?>" + text) == .entityRefLoopError)
    let units = Array(text.utf16)
    let little = Data([0xff, 0xfe] + units.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] })
    let big = Data([0xfe, 0xff] + units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] })
    #expect(code(little) == .entityRefLoopError && code(big) == .entityRefLoopError)
  }

  @Test func withinTheLimits() {
    for text in [
      "", "<r/>", "no XML & none", "<!ENTITY", "<!ENTITY ", "<!ENTITY a", "<!ENTITY a '", "<!ATTLIST ", "&", "<",
      "<!DOCTYPE r>",
      "<!DOCTYPE r [<!ENTITY a '\(Self.xs(900))'>]><r>\(String(repeating: "&a;", count: 1000))</r>",
      "<!DOCTYPE r [<!ENTITY e SYSTEM 'file:///a'>]><r>&e;</r>",
      "<!DOCTYPE r [<!ENTITY % draft 'INCLUDE'>]><r>&undeclared;</r>",
      "<r>" + String(repeating: "&amp;<c d='1'/>", count: 100_000) + "</r>",
      // Larger documents may expand to five times their size.
      "<!DOCTYPE r [<!ENTITY a '\(Self.xs(1_000_000))'>]><r>&a;&a;&a;</r>",
    ] {
      #expect(code(text) == nil, "\(text.prefix(60))")
    }
  }

  /// Declarations cannot hide in an encoding that writes markup with other bytes.
  @Test func encodings() {
    func declared(_ encoding: String) -> String { "<?xml version=\"1.0\" encoding = '\(encoding)'?><r/>" }
    for encoding in [
      "UTF-8", "us-ascii", "ISO-8859-1", "iso-8859-15", "Windows-1252", "Shift_JIS", "EUC-JP", "GB18030",
    ] {
      #expect(code(declared(encoding)) == nil, "\(encoding)")
    }
    for encoding in ["UTF-7", "UTF-16LE", "UTF-32", "IBM037", "ISO-2022-JP", "HZ-GB-2312", ""] {
      #expect(code(declared(encoding)) == .unknownEncodingError, "\(encoding)")
      #expect(code(Data([0xef, 0xbb, 0xbf]) + Data(declared(encoding).utf8)) == .unknownEncodingError, "\(encoding)")
    }
    for declaration in [
      "<?xml version=\"encoding='utf-8'\" encoding=\"UTF-7\"?>",
      "<?xml encoding='UTF-7' standalone=\"encoding='utf-8'\"?>",
      "<?xml version='1.0'\(String(repeating: " ", count: 1000))encoding='UTF-8'?>",
    ] {
      #expect(code(declaration + "<r/>") == .unknownEncodingError)
    }
    for (text, expected) in [
      (declared("UTF-16"), nil), (declared("utf-16le"), nil), ("<r/>", nil), (declared("UTF-7"), .unknownEncodingError),
      (declared("UTF-16BE"), .unknownEncodingError),
    ] as [(String, XMLParser.ErrorCode?)] {
      let little = Data([0xff, 0xfe] + text.utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] } + [0])
      #expect(code(little) == expected, "\(text)")
    }
    for start in [
      [0, 0, 0, 0x3c], [0x3c, 0, 0, 0], [0xff, 0xfe, 0, 0], [0x4c, 0x6f, 0xa7, 0x94], [0, 0, 0xfe, 0xff],
    ] as [[UInt8]] {
      #expect(code(Data(start) + Data("rest".utf8)) == .unknownEncodingError)
    }
  }
}
