/// Header fields in the order in which they came. Several may have one name. Names are case-insensitive.
public typealias CacheFields = [(name: String, value: String)]

extension Array where Element == (name: String, value: String) {
  /// Returns the values of all lines with this name, in their order.
  package func values(named name: String) -> [String] {
    filter { $0.name.isCaselessly(name) }.map(\.value)
  }

  package func firstValue(named name: String) -> String? {
    first { $0.name.isCaselessly(name) }?.value
  }

  package func contains(named name: String) -> Bool {
    contains { $0.name.isCaselessly(name) }
  }

  package mutating func removeAll(named name: String) {
    removeAll { $0.name.isCaselessly(name) }
  }

  /// Replaces all lines with this name by one line at the end.
  package mutating func replace(_ name: String, with value: String) {
    removeAll(named: name)
    append((name: name, value: value))
  }

  /// Returns the members of a list field (RFC 9110 5.6.1), without white space around them and without empty ones. A
  /// comma in a quoted string does not separate members.
  package func members(named name: String) -> [String] {
    values(named: name).flatMap(ListMembers.split)
  }
}

/// Splits a field value into the members of a list.
enum ListMembers {
  static func split(_ value: String) -> [String] {
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

  static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var text = text.drop(while: ASCII.isWhitespace)
    while let last = text.last, ASCII.isWhitespace(last) { text.removeLast() }
    return text
  }
}

extension String {
  /// Whether the strings are equal when the case of ASCII letters is ignored.
  package func isCaselessly(_ other: String) -> Bool {
    utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { lowered($0) == lowered($1) }
  }

  /// The string with ASCII letters in lower case, and all other characters unchanged.
  package var asciiLowercased: String { String(decoding: utf8.map(lowered), as: UTF8.self) }
}

@inline(__always) private func lowered(_ byte: UInt8) -> UInt8 {
  byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
}
