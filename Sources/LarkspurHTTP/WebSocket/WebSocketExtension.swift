import LarkspurBytes

/// An element of `Sec-WebSocket-Extensions` (RFC 6455 9.1).
package struct WebSocketExtension: Hashable, Sendable {
  package struct Parameter: Hashable, Sendable {
    package var name: String
    /// The value without quotation marks, or `nil` for a parameter without a value.
    package var value: String?
  }

  package var name: String
  package var parameters: [Parameter] = []

  /// Reads the value of a field: elements with their parameters, `a; b; c=1, d; e="2"`.
  ///
  /// - Returns: The elements, or `nil` if the value breaks the grammar. Empty elements are skipped (RFC 9110 5.6.1).
  package static func list(_ value: String) -> [WebSocketExtension]? {
    var reader = Reader(bytes: Array(value.utf8))
    var elements: [WebSocketExtension] = []
    while true {
      reader.skipSpace()
      if reader.skip(ASCII.comma) { continue }
      guard !reader.isAtEnd else { break }
      guard let name = reader.token() else { return nil }
      var element = WebSocketExtension(name: name)
      reader.skipSpace()
      while reader.skip(UInt8(ascii: ";")) {
        guard let parameter = reader.parameter() else { return nil }
        element.parameters.append(parameter)
        reader.skipSpace()
      }
      elements.append(element)
      guard reader.isAtEnd || reader.skip(ASCII.comma) else { return nil }
    }
    return elements.isEmpty ? nil : elements
  }

  private struct Reader {
    let bytes: [UInt8]
    var index = 0

    var isAtEnd: Bool { index >= bytes.count }

    mutating func skip(_ byte: UInt8) -> Bool {
      guard !isAtEnd, bytes[index] == byte else { return false }
      index += 1
      return true
    }

    mutating func skipSpace() {
      while !isAtEnd, bytes[index] == ASCII.space || bytes[index] == ASCII.tab { index += 1 }
    }

    mutating func token() -> String? {
      let start = index
      index = Scan.endOfToken(in: bytes.span, from: index, to: bytes.count)
      return index > start ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
    }

    mutating func parameter() -> Parameter? {
      skipSpace()
      guard let name = token() else { return nil }
      skipSpace()
      guard skip(ASCII.equals) else { return Parameter(name: name) }
      skipSpace()
      guard let value = skip(ASCII.quote) ? quotedToken() : token() else { return nil }
      return Parameter(name: name, value: value)
    }

    /// Reads a quoted string behind its first quotation mark. RFC 6455 9.1: without the quotation its text is a token.
    mutating func quotedToken() -> String? {
      var text: [UInt8] = []
      while !isAtEnd, bytes[index] != ASCII.quote {
        if skip(ASCII.backslash), isAtEnd { return nil }
        text.append(bytes[index])
        index += 1
      }
      guard skip(ASCII.quote), !text.isEmpty, Scan.endOfToken(in: text.span, from: 0, to: text.count) == text.count
      else { return nil }
      return String(decoding: text, as: UTF8.self)
    }
  }
}
