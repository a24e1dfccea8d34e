import Foundation

/// Reads the fields of a message in the format of an event stream (WHATWG HTML, section 9.2.6), those that the standard
/// does not define included.
enum EventFields {
  private static let lineFeed = UInt8(ascii: "\n")
  private static let carriageReturn = UInt8(ascii: "\r")

  /// Returns the fields of the first message, or `nil` if there are no fields. Lines of data are joined by line feeds;
  /// of any other field the last value counts.
  static func first(in data: Data) -> [String: String]? {
    var bytes = Array(data)[...]
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
    var fields: [String: String] = [:]
    while let line = nextLine(of: &bytes) {
      guard !line.isEmpty else {
        // Blank lines before the first field end no message.
        if fields.isEmpty { continue }
        break
      }
      guard let (name, value) = field(line) else { continue }
      if name == "data", let before = fields[name] {
        fields[name] = before + "\n" + value
      } else {
        fields[name] = value
      }
    }
    return fields.isEmpty ? nil : fields
  }

  /// Removes the first line, which ends with LF, CR, CR LF, or the end of the bytes.
  ///
  /// - Returns: The line without its end, or `nil` at the end of the bytes.
  private static func nextLine(of bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard !bytes.isEmpty else { return nil }
    guard let end = bytes.firstIndex(where: { $0 == lineFeed || $0 == carriageReturn }) else {
      defer { bytes = [] }
      return bytes
    }
    let line = bytes[..<end]
    let isPair = bytes[end] == carriageReturn && bytes.dropFirst(line.count + 1).first == lineFeed
    bytes = bytes.dropFirst(line.count + (isPair ? 2 : 1))
    return line
  }

  /// - Returns: The name and the value, or `nil` for a comment. A line without a colon is a name with an empty value.
  private static func field(_ line: ArraySlice<UInt8>) -> (name: String, value: String)? {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return (text(line), "") }
    guard colon > line.startIndex else { return nil }
    var value = line[(colon + 1)...]
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    return (text(line[..<colon]), text(value))
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
