import Foundation
import FoundationXML
import Larkspur

/// Measures how far the declarations of an XML document expand the document, without expanding it.
///
/// A document of 120 KB that uses one entity of 30 KB 30,000 times expands to 900 MB. libxml2 has a limit for this since
/// version 2.11; earlier versions limit only entities within entities.
///
/// The measure does not parse. Every place that looks like a declaration or a reference counts, even within a comment or
/// with errors that libxml2 ignores, so that a document cannot hide one. The measured size is an upper bound.
struct XMLExpansion {
  /// Maximum size in bytes to which any document may expand (libxml2's `XML_PARSER_ALLOWED_EXPANSION`).
  private static let expansionMax = 1_000_000.0
  /// Maximum ratio of a larger document's expanded size to its own (libxml2's `XML_MAX_AMPLIFICATION_DEFAULT`).
  private static let amplificationMax = 5.0
  /// The cost of one reference in bytes, in addition to its text (libxml2's `XML_ENT_FIXED_COST`).
  private static let referenceCost = 20.0
  /// Maximum number of entities within each other. libxml2 ends a document with more.
  private static let depthMax = 40

  /// Maximum length of an XML declaration in bytes.
  private static let declarationMax = 1000

  /// The names of encodings that write ASCII characters, and only these, as the bytes of ASCII, as far as markup has
  /// them. Encodings with other bytes for `&` and `<`, such as UTF-7, hide declarations.
  private static let encodings = [
    "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "iso8859-", "iso_8859-", "latin1", "windows-125", "cp125",
    "windows-874", "windows-31j", "koi8-", "shift_jis", "euc-", "gb2312", "gbk", "gb18030", "big5", "macintosh",
  ]

  /// Throws an `NSError` of `XMLParser.errorDomain` unless a parser may expand the document.
  static func check(_ data: Data) throws {
    guard let text = readable(Array(data)) else {
      throw error(.unknownEncodingError, "The XML document has an encoding that is not supported.")
    }
    var measure = XMLExpansion(text)
    guard measure.isWithinLimits else {
      throw error(.entityRefLoopError, "The entities of the XML document expand it too far.")
    }
  }

  private static func error(_ code: XMLParser.ErrorCode, _ text: String) -> NSError {
    NSError(domain: XMLParser.errorDomain, code: code.rawValue, userInfo: NSError.entries(forMessage: text))
  }

  // MARK: - Sizes

  /// An entity (`&name`), or the default attributes of an element (`<name`).
  private struct Declaration {
    /// Bytes of the declaration's own text.
    var size = 0.0
    /// Number of references to each declaration in the text.
    var references: [String: Double] = [:]
  }

  /// What a text with references expands to.
  private struct Expansion {
    static let tooLarge = Expansion(size: .infinity)

    /// Bytes.
    var size = 0.0
    /// Number of declarations within each other.
    var depth = 0
  }

  private let size: Double
  private var declarations: [String: Declaration] = [:]
  private var references: [String: Double] = [:]
  /// What is known of each declaration. A declaration that is being measured is too large: it refers to itself.
  private var measured: [String: Expansion] = [:]
  /// Whether a parameter entity contains markup, which may be declarations.
  private var hasHiddenDeclarations = false

  private init(_ text: [UInt8]) {
    size = Double(text.count)
    var rest = text[...]
    while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
      rest = text[(start + 1)...]
      if let declaration = Self.content(of: rest, after: "!ENTITY") {
        readEntity(declaration)
      } else if let declaration = Self.content(of: rest, after: "!ATTLIST") {
        readAttributes(declaration)
      }
    }
    if !declarations.isEmpty { references = Self.references(in: text[...]) }
  }

  private var isWithinLimits: Bool {
    mutating get {
      guard !hasHiddenDeclarations else { return false }
      let expansion = expansion(of: references, within: 0)
      return size + expansion.size <= max(Self.expansionMax, Self.amplificationMax * size)
    }
  }

  /// Measures references that stand within a number of declarations.
  private mutating func expansion(of references: [String: Double], within level: Int) -> Expansion {
    references.reduce(into: Expansion()) { sum, reference in
      guard let declaration = declarations[reference.key] else { return }
      let expansion = expansion(of: reference.key, declaration, within: level)
      sum.size += reference.value * (expansion.size + Self.referenceCost)
      sum.depth = max(sum.depth, expansion.depth)
    }
  }

  private mutating func expansion(of name: String, _ declaration: Declaration, within level: Int) -> Expansion {
    if let known = measured[name] { return known }
    guard level < Self.depthMax else { return .tooLarge }
    measured[name] = .tooLarge
    var expansion = expansion(of: declaration.references, within: level + 1)
    expansion.size += declaration.size
    expansion.depth += 1
    // The order of references is not that of the document: the depth may have been measured from the middle.
    if expansion.depth > Self.depthMax { expansion = .tooLarge }
    measured[name] = expansion
    return expansion
  }

  // MARK: - Declarations

  /// Returns what follows a keyword and white space, or `nil` if the bytes do not begin with the keyword.
  private static func content(of bytes: ArraySlice<UInt8>, after keyword: String) -> ArraySlice<UInt8>? {
    bytes.starts(with: keyword.utf8) ? bytes.dropFirst(keyword.utf8.count).drop(while: isSpace) : nil
  }

  /// Returns the beginning of a name, as far as it is ASCII. Names that differ later count as one, because the bytes do
  /// not show which other characters belong to a name.
  private static func name(of bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    bytes.prefix { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "_:.-".utf8.contains(byte)
      }
    }
  }

  private static func isASCII(_ byte: UInt8) -> Bool { byte < 0x80 }

  /// Reads a name, a value in quotation marks, and for a parameter entity a percent sign before them. An external
  /// entity has no value, and is not loaded.
  private mutating func readEntity(_ declaration: ArraySlice<UInt8>) {
    let isParameter = declaration.first == UInt8(ascii: "%")
    let named = isParameter ? declaration.dropFirst().drop(while: Self.isSpace) : declaration
    let name = Self.name(of: named)
    let quoted = named[name.endIndex...].drop { !Self.isSpace($0) && !"\"'".utf8.contains($0) }.drop(
      while: Self.isSpace)
    guard let mark = quoted.first, mark == UInt8(ascii: "\"") || mark == UInt8(ascii: "'") else { return }
    let value = quoted.dropFirst().prefix { $0 != mark }
    if isParameter {
      hasHiddenDeclarations = hasHiddenDeclarations || value.contains { "<&%".utf8.contains($0) }
    } else {
      // References to characters count as the characters when the entity is used (XML 1.0, 4.4.5).
      add(Self.withoutCharacterReferences(value), size: value.count, to: "&" + String(decoding: name, as: UTF8.self))
    }
  }

  /// Reads the name of an element and the declarations of its attributes. A default value cannot contain `<` (XML 1.0,
  /// 3.3.2), so the text ends before the next one.
  private mutating func readAttributes(_ declaration: ArraySlice<UInt8>) {
    let text = declaration.prefix { $0 != UInt8(ascii: "<") }
    add(text, size: text.count, to: "<" + String(decoding: Self.name(of: text), as: UTF8.self))
  }

  /// Adds a declaration. All declarations of a name count, because one of them may stand in a comment.
  private mutating func add(_ text: ArraySlice<UInt8>, size: Int, to name: String) {
    declarations[name, default: Declaration()].size += Double(size)
    declarations[name]?.references.merge(Self.references(in: text)) { $0 + $1 }
  }

  /// Returns the number of references to each entity, and of the start tags of each element.
  private static func references(in text: ArraySlice<UInt8>) -> [String: Double] {
    var found: [String: Double] = [:]
    var rest = text
    while let mark = rest.popFirst() {
      guard mark == UInt8(ascii: "&") || mark == UInt8(ascii: "<") else { continue }
      let name = name(of: rest)
      if name.isEmpty, rest.first.map(isASCII) ?? true { continue }
      rest = rest[name.endIndex...]
      found[(mark == UInt8(ascii: "&") ? "&" : "<") + String(decoding: name, as: UTF8.self), default: 0] += 1
    }
    return found
  }

  /// Replaces references to ASCII characters, `&#38;` and `&#x26;`, by the characters.
  private static func withoutCharacterReferences(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var (result, rest) = ([UInt8](), text)
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "&"), rest.first == UInt8(ascii: "#") else {
        result.append(byte)
        continue
      }
      let digits = rest.dropFirst().prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "&") }
      let isHexadecimal = digits.first == UInt8(ascii: "x")
      let number = String(decoding: isHexadecimal ? digits.dropFirst() : digits, as: UTF8.self)
      rest = rest[digits.endIndex...].dropFirst()
      result.append(UInt8(number, radix: isHexadecimal ? 16 : 10) ?? UInt8(ascii: "?"))
    }
    return result[...]
  }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0d].contains(byte) }

  // MARK: - Encodings

  /// Returns the document in its own encoding, or in UTF-8 if it is in UTF-16. `nil` if its markup is not readable in
  /// another encoding (XML 1.0, appendix F).
  private static func readable(_ bytes: [UInt8]) -> [UInt8]? {
    let start = bytes.prefix(4)
    let isBigEndian = start.starts(with: [0xfe, 0xff]) || start.elementsEqual([0, 0x3c, 0, 0x3f])
    let isLittleEndian = start.starts(with: [0xff, 0xfe]) || start.elementsEqual([0x3c, 0, 0x3f, 0])
    guard isBigEndian || isLittleEndian else {
      // A zero belongs to UTF-32. The other bytes are the beginning of an XML declaration in EBCDIC.
      guard !start.contains(0), !start.elementsEqual([0x4c, 0x6f, 0xa7, 0x94]) else { return nil }
      return encodings(declaredBy: bytes).allSatisfy { name in encodings.contains { name.hasPrefix($0) } } ? bytes : nil
    }
    let units = stride(from: 0, to: bytes.count - 1, by: 2).map { index in
      let (one, other) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBigEndian ? one << 8 | other : other << 8 | one
    }
    // The byte order mark of UTF-32 begins with that of UTF-16.
    guard !units.contains(0) else { return nil }
    let text = Array(String(decoding: units, as: UTF16.self).utf8)
    let known = ["utf-8", "utf-16", "utf16", isBigEndian ? "utf-16be" : "utf-16le"]
    return encodings(declaredBy: text).allSatisfy(known.contains) ? text : nil
  }

  /// Returns the encodings that an XML declaration names, in lower case. Every place that looks like a name counts.
  private static func encodings(declaredBy text: [UInt8]) -> [String] {
    let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]
    let content = text.starts(with: byteOrderMark) ? text.dropFirst(byteOrderMark.count) : text[...]
    guard content.starts(with: "<?xml".utf8), content.dropFirst(5).first.map(isSpace) ?? false else { return [] }
    // Performance: the declaration is at the beginning; a document can be long.
    let beginning = String(decoding: content.prefix(declarationMax), as: UTF8.self)
    guard let end = beginning.range(of: "?>") else { return ["of a declaration that is too long"] }
    return beginning[..<end.lowerBound].components(separatedBy: "encoding").dropFirst().compactMap { rest in
      let value = rest.drop { $0.isWhitespace || $0 == "=" }
      guard let mark = value.first, mark == "\"" || mark == "'" else { return nil }
      return value.dropFirst().prefix { $0 != mark }.lowercased()
    }
  }
}
