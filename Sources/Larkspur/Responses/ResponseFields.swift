import LarkspurBytes
import LarkspurHTTP

/// The header fields of a response: as they came over the wire, where nothing is made of them until somebody asks, or
/// as somebody gave them.
enum ResponseFields: Sendable {
  case wire(bytes: [UInt8], table: FieldTable)
  case given([String: String])

  /// Names as most programs spell them; values of fields that came more than once are joined by `, ` (RFC 9110 5.3).
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
        name = names[lowercased] ?? FieldNames.canonical(name)
        names[lowercased] = name
        if let other = fields[name] { fields[name] = other + ", " + text } else { fields[name] = text }
      }
      return fields
    }
  }

  /// In the order in which they came.
  var list: [(name: String, value: String)] {
    switch self {
    case .given(let fields): return fields.map { (name: $0.key, value: $0.value) }.sorted { $0.name < $1.name }
    case .wire(let bytes, let table):
      return (0..<table.count).map {
        (
          name: String(decoding: bytes[table[$0].name], as: UTF8.self),
          value: FieldValue.text(table[$0].value, in: bytes.span)
        )
      }
    }
  }

  /// Whether there is a field of that name: quick, for names that are asked for with each response.
  func contains(_ name: CaselessWord) -> Bool {
    switch self {
    case .given(let fields): fields.contains { name.matches($0.key.utf8Span.span, 0..<$0.key.utf8.count) }
    case .wire(let bytes, let table): table.first(named: name, in: bytes.span) != nil
    }
  }

  /// Whether there may be one of these: false is quick, and most often so.
  func mayContain(_ one: CaselessWord, _ other: CaselessWord) -> Bool {
    switch self {
    case .given: true
    case .wire(let bytes, let table): table.contains(one, or: other, in: bytes.span)
    }
  }

  /// The value of the field of that name, whatever its case; several are joined.
  func value(of name: String) -> String? {
    switch self {
    case .given(let fields):
      return fields[name] ?? fields.first { $0.key.isCaseless(name) }?.value
    case .wire:
      let values = values(of: name)
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
  }

  /// The values of the fields of that name, one by one, as bytes.
  func rawValues(of name: String) -> [[UInt8]] {
    switch self {
    case .given: return values(of: name).map { Array($0.utf8) }
    case .wire(let bytes, let table):
      let word = Array(name.utf8)
      return (0..<table.count).compactMap {
        Self.isNamed(table[$0], word, in: bytes) ? Array(bytes[table[$0].value]) : nil
      }
    }
  }

  private static func isNamed(_ field: FieldPosition, _ word: [UInt8], in bytes: [UInt8]) -> Bool {
    field.nameCount == word.count
      && zip(bytes[field.name], word).allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
  }

  /// The same for a name that is asked for often.
  func values(of name: CaselessWord) -> [String] {
    switch self {
    case .given(let fields):
      return fields.sorted { $0.key < $1.key }.filter { name.matches($0.key.utf8Span.span, 0..<$0.key.utf8.count) }
        .map(\.value)
    case .wire(let bytes, let table):
      var values: [String] = []
      var index = table.index(of: name, from: 0, in: bytes.span)
      while index < table.count {
        values.append(FieldValue.text(table[index].value, in: bytes.span))
        index = table.index(of: name, from: index + 1, in: bytes.span)
      }
      return values
    }
  }

  /// What `read` makes of the value of the field of that name, if it came over the wire and only once. Nil: it did not, or
  /// nothing.
  func only<Result>(_ name: CaselessWord, _ read: (Span<UInt8>) -> Result?) -> Result? {
    guard case .wire(let bytes, let table) = self else { return nil }
    let index = table.index(of: name, from: 0, in: bytes.span)
    guard index < table.count, table.index(of: name, from: index + 1, in: bytes.span) == table.count else { return nil }
    return read(bytes.span.extracting(table[index].value))
  }

  /// The values of the fields of that name, one by one.
  func values(of name: String) -> [String] {
    switch self {
    case .given(let fields):
      return fields.sorted { $0.key < $1.key }.filter { $0.key.isCaseless(name) }.map(\.value)
    case .wire(let bytes, let table):
      var values: [String] = []
      let word = Array(name.utf8)
      for index in 0..<table.count where Self.isNamed(table[index], word, in: bytes) {
        values.append(FieldValue.text(table[index].value, in: bytes.span))
      }
      return values
    }
  }
}

/// How names are spelled.
enum FieldNames {
  /// Names take one form whatever a server sends, as the documentation of `allHeaderFields` says: capitals at the beginning
  /// of words, small letters else. Those that begin with `x-` stay as they are.
  static func canonical(_ name: String) -> String {
    if name.isCaseless("WWW-Authenticate") { return "WWW-Authenticate" }
    return String(name.prefix(2)).isCaseless("x-") ? name : name.capitalizedFieldName
  }

  /// Of names that differ in case only the first one counts, in the order of their bytes: a dictionary has none of its own.
  static func canonical(_ fields: [String: String]) -> [String: String] {
    var result: [String: String] = [:]
    for (name, value) in fields.sorted(by: { $0.key < $1.key })
    where !name.isEmpty && result[canonical(name)] == nil {
      result[canonical(name)] = value
    }
    return result
  }
}

/// Names that are asked for with each response.
enum KnownField {
  static var setCookie: CaselessWord { "set-cookie" }
  static var contentEncoding: CaselessWord { "content-encoding" }
  static var contentType: CaselessWord { "content-type" }
}
