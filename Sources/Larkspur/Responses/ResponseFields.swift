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
        name = names[lowercased] ?? FieldNames.canonical[lowercased] ?? name
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

  /// The values of the fields of that name, one by one.
  func values(of name: String) -> [String] {
    switch self {
    case .given(let fields):
      return fields.filter { $0.key.isCaseless(name) }.map(\.value)
    case .wire(let bytes, let table):
      var values: [String] = []
      let word = Array(name.utf8)
      for index in 0..<table.count where table[index].nameCount == word.count {
        let field = table[index]
        guard zip(bytes[field.name], word).allSatisfy({ $0.lowercasedASCII == $1.lowercasedASCII }) else { continue }
        values.append(FieldValue.text(field.value, in: bytes.span))
      }
      return values
    }
  }
}

/// How names are spelled.
enum FieldNames {
  /// By their lower-case form: certain names take their standard form, whatever a server sends, as the documentation of
  /// `allHeaderFields` says.
  static let canonical: [String: String] = Dictionary(
    uniqueKeysWithValues: [
      "Accept-Ranges", "Access-Control-Allow-Origin", "Age", "Allow", "Authentication-Info", "Cache-Control",
      "Connection", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
      "Content-Location", "Content-Range", "Content-Type", "Date", "ETag", "Expires", "Keep-Alive", "Last-Modified",
      "Link", "Location", "Pragma", "Proxy-Authenticate", "Retry-After", "Server", "Set-Cookie",
      "Strict-Transport-Security", "Trailer", "Transfer-Encoding", "Upgrade", "Vary", "Via", "WWW-Authenticate",
      "Warning",
    ].map { ($0.lowercased(), $0) })
}

/// Names that are asked for with each response.
enum KnownField {
  static let setCookie: CaselessWord = "set-cookie"
  static let contentEncoding: CaselessWord = "content-encoding"
}
