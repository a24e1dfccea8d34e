/// The fields of a head or of a trailer section, read in the slow and obvious way: the lines are split at CRLF, or at
/// LF if the first line ends with LF alone, and each line is checked by itself.
enum NaiveFields {
  /// - Returns: The fields, or `nil` if a line is malformed.
  static func parse(_ lines: [[UInt8]]) -> [Transcript.Field]? {
    var fields: [(name: [UInt8], values: [[UInt8]])] = []
    for line in lines {
      guard let first = line.first else { return nil }
      if first == 0x20 || first == 0x09 {
        guard !fields.isEmpty, isValue(line) else { return nil }
        fields[fields.count - 1].values.append(trimmed(line))
      } else {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = Array(line[..<colon])
        let value = Array(line[(colon + 1)...])
        guard !name.isEmpty, name.allSatisfy(isToken), isValue(value) else { return nil }
        fields.append((name, [trimmed(value)]))
      }
    }
    return fields.map { name, values in
      let value = Array(values.filter { !$0.isEmpty }.joined(separator: [0x20]))
      return Transcript.Field(name: text(name), value: text(value))
    }
  }

  /// A section's lines up to the empty one.
  struct Section {
    var lines: [[UInt8]] = []
    /// Whether the lines end with LF alone. A line of such a section that ends with CRLF contains a CR, which is an
    /// error.
    var endsWithLF = false
    /// The index behind the section.
    var end = 0
  }

  /// - Returns: The section at the beginning of `bytes`, or `nil` if it has no empty line.
  static func section(of bytes: ArraySlice<UInt8>, mayEndWithLF: Bool) -> Section? {
    var section = Section()
    if mayEndWithLF, let first = bytes.firstIndex(of: 0x0a) {
      section.endsWithLF = first == bytes.startIndex || bytes[first - 1] != 0x0d
    }
    let endCount = section.endsWithLF ? 1 : 2
    var start = bytes.startIndex
    while let end = section.endsWithLF ? bytes[start...].firstIndex(of: 0x0a) : firstCRLF(in: bytes[start...]) {
      section.end = end + endCount
      if end == start { return section }
      section.lines.append(Array(bytes[start..<end]))
      start = section.end
    }
    return nil
  }

  static func firstCRLF(in bytes: ArraySlice<UInt8>) -> Int? {
    bytes.indices.first { $0 + 1 < bytes.endIndex && bytes[$0] == 0x0d && bytes[$0 + 1] == 0x0a }
  }

  static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"): true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  static func isValue(_ bytes: some Sequence<UInt8>) -> Bool {
    bytes.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7f) }
  }

  static func trimmed(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    return Array(bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
  }

  static func text(_ bytes: [UInt8]) -> String {
    String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }
}
