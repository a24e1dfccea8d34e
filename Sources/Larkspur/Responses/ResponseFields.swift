import LarkspurBytes
import LarkspurHTTP

/// The header fields of a response: as they came over the wire, parsed when they are read, or as a program gave them.
enum ResponseFields: Sendable {
  case wire(bytes: [UInt8], table: FieldTable)
  case given([String: String])

  /// The fields by name, in the spelling of `FieldSpelling.canonical`. The values of fields with equal names are joined by
  /// `, ` (RFC 9110 5.3).
  var dictionary: [String: String] {
    switch self {
    case .given(let fields): return fields
    case .wire(let bytes, let table):
      var fields: [String: String] = [:]
      // A sender may spell a name in several ways.
      var names: [String: String] = [:]
      for index in 0..<table.count {
        let field = table[index]
        let text = FieldValue.text(field.value, in: bytes.span)
        var name = String(decoding: bytes[field.name], as: UTF8.self)
        let lowercased = name.lowercased()
        name = names[lowercased] ?? FieldSpelling.canonical(name)
        names[lowercased] = name
        if let other = fields[name] { fields[name] = other + ", " + text } else { fields[name] = text }
      }
      return fields
    }
  }

  /// The fields in the order in which they came; fields that a program gave, in the order of their names.
  var list: FieldList {
    switch self {
    case .given(let fields): return fields.map { Field($0.key, $0.value) }.sorted { $0.name < $1.name }
    case .wire(let bytes, let table): return FieldList(table, in: bytes)
    }
  }

  /// Whether there is a field with a name. Performance: for names that every response is searched for.
  func contains(_ name: CaseInsensitiveToken) -> Bool {
    switch self {
    case .given(let fields): fields.contains { name.matches($0.key.utf8Span.span, 0..<$0.key.utf8.count) }
    case .wire(let bytes, let table): table.first(named: name, in: bytes.span) != nil
    }
  }

  /// Whether there may be a field with one of two names. Performance: `false` is quick, and the usual result.
  func mayContain(_ one: CaseInsensitiveToken, _ other: CaseInsensitiveToken) -> Bool {
    switch self {
    case .given: true
    case .wire(let bytes, let table): table.contains(one, or: other, in: bytes.span)
    }
  }

  /// The value of the field with a name, regardless of case. Several values are joined.
  func value(of name: String) -> String? {
    switch self {
    case .given(let fields):
      return fields[name] ?? fields.first { $0.key.equalsIgnoringCase(name) }?.value
    case .wire:
      let values = values(of: name)
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
  }

  /// The values of the fields with a name, one by one, as bytes.
  func rawValues(of name: String) -> [[UInt8]] {
    switch self {
    case .given: return values(of: name).map { Array($0.utf8) }
    case .wire(let bytes, let table):
      let nameBytes = Array(name.utf8)
      return (0..<table.count).compactMap {
        Self.isNamed(table[$0], nameBytes, in: bytes) ? Array(bytes[table[$0].value]) : nil
      }
    }
  }

  private static func isNamed(_ field: FieldPosition, _ name: [UInt8], in bytes: [UInt8]) -> Bool {
    field.nameCount == name.count
      && zip(bytes[field.name], name).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
  }

  /// The values of the fields with a name, one by one. Performance: for names that every response is searched for.
  func values(of name: CaseInsensitiveToken) -> [String] {
    switch self {
    case .given(let fields):
      return fields.sorted { $0.key < $1.key }.filter { name.matches($0.key.utf8Span.span, 0..<$0.key.utf8.count) }
        .map(\.value)
    case .wire(let bytes, let table): return table.values(of: name, in: bytes)
    }
  }

  /// Returns the result of `read` for the value of the field with a name, if the field came over the wire, and only
  /// once.
  ///
  /// - Returns: `nil` otherwise, or if `read` returns `nil`.
  func only<Result>(_ name: CaseInsensitiveToken, _ read: (Span<UInt8>) -> Result?) -> Result? {
    guard case .wire(let bytes, let table) = self else { return nil }
    let index = table.index(of: name, from: 0, in: bytes.span)
    guard index < table.count, table.index(of: name, from: index + 1, in: bytes.span) == table.count else { return nil }
    return read(bytes.span.extracting(table[index].value))
  }

  /// The values of the fields with a name, one by one.
  func values(of name: String) -> [String] {
    switch self {
    case .given(let fields):
      return fields.sorted { $0.key < $1.key }.filter { $0.key.equalsIgnoringCase(name) }.map(\.value)
    case .wire(let bytes, let table):
      var values: [String] = []
      let nameBytes = Array(name.utf8)
      for index in 0..<table.count where Self.isNamed(table[index], nameBytes, in: bytes) {
        values.append(FieldValue.text(table[index].value, in: bytes.span))
      }
      return values
    }
  }
}

/// The spelling of field names.
enum FieldSpelling {
  /// Returns a name in the form that the documentation of `allHeaderFields` states: words with a capital first letter
  /// and small letters otherwise. Names that begin with `x-` are unchanged.
  static func canonical(_ name: String) -> String {
    if name.equalsIgnoringCase("WWW-Authenticate") { return "WWW-Authenticate" }
    return String(name.prefix(2)).equalsIgnoringCase("x-") ? name : name.capitalizedFieldName
  }

  /// Returns fields with their names in canonical form. Of several names with one canonical form, the first in the
  /// order of the names counts, because a dictionary has no order. Empty names are left out.
  static func canonical(_ fields: [String: String]) -> [String: String] {
    var result: [String: String] = [:]
    for (name, value) in fields.sorted(by: { $0.key < $1.key })
    where !name.isEmpty && result[canonical(name)] == nil {
      result[canonical(name)] = value
    }
    return result
  }
}

/// The names that every response is searched for.
enum KnownField {
  static var setCookie: CaseInsensitiveToken { "set-cookie" }
  static var contentEncoding: CaseInsensitiveToken { "content-encoding" }
  static var contentType: CaseInsensitiveToken { "content-type" }
}
