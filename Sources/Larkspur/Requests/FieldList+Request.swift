import Foundation
import LarkspurBytes
import LarkspurHTTP

/// The fields of a request, as a program sets them.
extension FieldList {
  /// Creates the fields of a dictionary in the order of their names, because a dictionary's order changes from run to
  /// run.
  init(_ dictionary: [String: String]) {
    self = dictionary.map { Field($0.key, $0.value) }.sorted { $0.name < $1.name }
  }

  /// Creates fields that were read from an archive. Fields that cannot be sent are left out.
  ///
  /// - Returns: `nil` if the numbers of names and values differ.
  init?(untrusted names: [String], _ values: [String]) {
    guard names.count == values.count else { return nil }
    self = zip(names, values).map { Field($0, $1) }.sendable
  }

  /// The fields without those that cannot be sent.
  var sendable: FieldList { filter { $0.name.isToken && $0.value.isFieldValue } }

  var dictionary: [String: String] { Dictionary(map { ($0.name, $0.value) }) { $1 } }

  /// The values by names in lower case. If a name occurs twice, the last value counts.
  var caseless: [String: String] { Dictionary(map { ($0.name.lowercased(), $0.value) }) { $1 } }

  /// Whether any field concerns a cache: which stored responses may be used, or under which condition (RFC 9111 5.2,
  /// RFC 9110 13 and 14.2), or under which key they are stored (`Host`).
  var concernCache: Bool {
    contains { field in
      switch field.name.utf8.count {
      case 4: field.name.equalsIgnoringCase("Host")
      case 5: field.name.equalsIgnoringCase("Range") || field.name.isConditional
      case 6: field.name.equalsIgnoringCase("Pragma") || field.name.isConditional
      case 13: field.name.equalsIgnoringCase("Cache-Control") || field.name.isConditional
      default: field.name.isConditional
      }
    }
  }

  /// Replaces all lines with this name by one line at the end, or removes them. A value that cannot be sent changes
  /// nothing.
  mutating func set(_ name: String, to value: String?) {
    guard value?.isFieldValue != false else { return }
    removeAll(named: name)
    if let value { append(Field(name.capitalizedFieldName, value)) }
  }

  /// Adds a value to the line with this name, after a comma, or adds a line. A value that cannot be sent changes nothing.
  mutating func add(_ name: String, _ value: String) {
    guard value.isFieldValue else { return }
    if let index = firstIndex(where: { $0.name.equalsIgnoringCase(name) }) {
      self[index].value += "," + value
    } else {
      append(Field(name.capitalizedFieldName, value))
    }
  }
}

extension String {
  /// Whether the text can be a field's value: no NUL, and no line end other than that of a fold (RFC 9110 5.5, RFC 9112
  /// 5.2).
  var isFieldValue: Bool {
    let bytes = utf8Span.span
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case 0, 0x0A: return false
      case 0x0D:
        guard index + 2 < bytes.count, bytes[index + 1] == 0x0A, bytes[index + 2] == 0x20 || bytes[index + 2] == 0x09
        else { return false }
        index += 3
      default: index += 1
      }
    }
    return true
  }

  /// The text in one line, if it is a folded field value: a client must not send folds (RFC 9112 5.2). Other text is
  /// unchanged.
  var unfolded: String {
    utf8.contains(0x0D) && isFieldValue ? replacingOccurrences(of: "\r\n", with: " ") : self
  }

  /// Whether this is the name of a conditional field such as `If-Match`: it begins with `If-`.
  fileprivate var isConditional: Bool {
    let bytes = utf8Span.span
    return bytes.count > 3 && bytes[0] | 0x20 == UInt8(ascii: "i") && bytes[1] | 0x20 == UInt8(ascii: "f")
      && bytes[2] == UInt8(ascii: "-")
  }

  /// The name with a capital letter at the start of each word and small letters elsewhere. Each ASCII character other
  /// than a letter or an apostrophe ends a word.
  var capitalizedFieldName: String {
    var isStart = true
    var isCapitalized = true
    for byte in utf8 {
      if byte.isASCIILetter, isStart == (byte | 0x20 == byte) { isCapitalized = false }
      isStart = byte.endsWord
    }
    guard !isCapitalized else { return self }
    isStart = true
    var bytes: [UInt8] = []
    bytes.reserveCapacity(utf8.count)
    for byte in utf8 {
      bytes.append(byte.isASCIILetter ? (isStart ? byte & ~0x20 : byte | 0x20) : byte)
      isStart = byte.endsWord
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension UInt8 {
  var isASCIILetter: Bool { (0x61...0x7A).contains(self | 0x20) }
  fileprivate var endsWord: Bool { self < 0x80 && !isASCIILetter && self != UInt8(ascii: "'") }
}
