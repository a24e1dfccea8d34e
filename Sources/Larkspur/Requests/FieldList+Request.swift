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
