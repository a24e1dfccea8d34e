import LarkspurBytes

/// A header field: a line of a head, or of a trailer section.
public struct Field: Codable, Hashable, Sendable {
  /// The name, with its letter case kept.
  public var name: String
  /// The value, without the white space around it.
  public var value: String

  /// Creates a field. The texts are not checked here.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// Header fields, in the order of their lines. Names are compared without regard to case (RFC 9110 5.1).
///
/// A list of pairs, and no dictionary, because a dictionary cannot hold what a message has:
///
/// - Several lines may have one name. Their order counts, and they may be joined by commas (RFC 9110 5.3), but not those
///   of `Set-Cookie`, and a line break between two cookies is no comma.
/// - The order of lines with different names has no meaning, but servers and proxies see it, and it is sent as the
///   program gave it.
/// - The spelling of a name has no meaning either, and is sent as it was given: there are servers that mind.
/// - A head has a few dozen fields, so that a search of a list costs less than hashes in small letters. A peer chooses
///   the names, and `Limits` keeps their number small.
public typealias FieldList = [Field]

extension FieldList {
  /// Creates the fields of a head or a trailer section, in the order of their lines.
  package init(_ table: FieldTable, in bytes: [UInt8]) {
    self = (0..<table.count).map {
      Field(String(decoding: bytes[table[$0].name], as: UTF8.self), FieldValue.text(table[$0].value, in: bytes.span))
    }
  }

  /// Returns the values of all lines with this name, in their order.
  package func values(named name: String) -> [String] {
    var values: [String] = []
    for field in self where field.name.equalsIgnoringCase(name) { values.append(field.value) }
    return values
  }

  package func firstValue(named name: String) -> String? {
    first { $0.name.equalsIgnoringCase(name) }?.value
  }

  package func contains(named name: String) -> Bool {
    contains { $0.name.equalsIgnoringCase(name) }
  }

  package mutating func removeAll(named name: String) {
    removeAll { $0.name.equalsIgnoringCase(name) }
  }

  /// Replaces all lines with this name by one line at the end.
  package mutating func replace(_ name: String, with value: String) {
    removeAll(named: name)
    append(Field(name, value))
  }

  /// Returns the members of a list field (RFC 9110 5.6.1), without white space around them and without empty ones. A
  /// comma in a quoted string does not separate members.
  package func members(named name: String) -> [String] {
    var members: [String] = []
    for field in self where field.name.equalsIgnoringCase(name) { members += ListMembers.split(field.value) }
    return members
  }
}

extension FieldTable {
  /// Returns the values of all fields with this name as bytes, in their order.
  package func values(named name: CaseInsensitiveToken, in bytes: [UInt8]) -> [[UInt8]] {
    values(named: name, in: bytes) { Array(bytes[$0]) }
  }

  /// Returns the values of all fields with this name as text, in their order.
  package func values(of name: CaseInsensitiveToken, in bytes: [UInt8]) -> [String] {
    values(named: name, in: bytes) { FieldValue.text($0, in: bytes.span) }
  }

  private func values<Value>(
    named name: CaseInsensitiveToken, in bytes: [UInt8], _ make: (Range<Int>) -> Value
  ) -> [Value] {
    var values: [Value] = []
    var index = index(of: name, from: 0, in: bytes.span)
    while index < count {
      values.append(make(self[index].value))
      index = self.index(of: name, from: index + 1, in: bytes.span)
    }
    return values
  }
}

/// Splits a field value into the members of a list.
package enum ListMembers {
  package static func split(_ value: String) -> [String] {
    if let member = single(value) { return member.isEmpty ? [] : [member] }
    var members: [String] = []
    var member: [UInt8] = []
    var isQuoted = false
    var isEscaped = false
    func end() {
      let text = trimmed(member[...])
      if !text.isEmpty { members.append(String(decoding: text, as: UTF8.self)) }
      member.removeAll(keepingCapacity: true)
    }
    for byte in value.utf8 {
      if isEscaped {
        isEscaped = false
      } else if isQuoted, byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == ASCII.quote {
        isQuoted.toggle()
      } else if byte == ASCII.comma, !isQuoted {
        end()
        continue
      }
      member.append(byte)
    }
    end()
    return members
  }

  /// Returns a value without commas and quotation marks, and without the white space around it, or `nil` if it has any.
  private static func single(_ value: String) -> String? {
    let bytes = value.utf8Span.span
    for index in bytes.indices where bytes[index] == ASCII.comma || bytes[index] == ASCII.quote { return nil }
    var (start, end) = (0, bytes.count)
    while start < end, ASCII.isWhitespace(bytes[start]) { start += 1 }
    while start < end, ASCII.isWhitespace(bytes[end - 1]) { end -= 1 }
    if start == 0, end == bytes.count { return value }
    return String(value.utf8.dropFirst(start).dropLast(bytes.count - end)) ?? ""
  }

  static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var text = text.drop(while: ASCII.isWhitespace)
    while let last = text.last, ASCII.isWhitespace(last) { text.removeLast() }
    return text
  }
}

/// Names of fields, compared without regard to the case of ASCII letters.
struct FieldNames {
  private let few: [String]
  private let many: Set<String>

  /// With more names than this, a hash is cheaper than comparisons.
  private static let comparedMax = 16

  /// - Parameter names: A peer may choose them, and as many as fit into a head.
  init(_ names: [String]) {
    let areFew = names.count <= Self.comparedMax
    few = areFew ? names : []
    many = areFew ? [] : Set(names.map(\.asciiLowercased))
  }

  func contains(_ name: String) -> Bool {
    many.isEmpty ? few.contains { $0.equalsIgnoringCase(name) } : many.contains(name.asciiLowercased)
  }
}
