/// Header fields in the order in which they came. A name may be there more than once, and its case does not count.
public typealias CacheFields = [(name: String, value: String)]

extension Array where Element == (name: String, value: String) {
  /// The values of all lines of that name, in their order.
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

  /// Puts one line in the place of all lines of that name.
  package mutating func replace(_ name: String, with value: String) {
    removeAll(named: name)
    append((name: name, value: value))
  }

  /// The members of a list field (RFC 9110 5.6.1), without white space around them and without empty ones. A comma in
  /// a quoted string divides nothing.
  package func members(named name: String) -> [String] {
    values(named: name).flatMap(ListMembers.split)
  }
}

/// The members of a field value that is a list.
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
  /// Equal but for the case of ASCII letters.
  package func isCaselessly(_ other: String) -> Bool {
    utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { lowered($0) == lowered($1) }
  }

  /// With ASCII letters in lower case, and everything else as it is.
  package var asciiLowercased: String { String(decoding: utf8.map(lowered), as: UTF8.self) }
}

@inline(__always) private func lowered(_ byte: UInt8) -> UInt8 {
  byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
}
