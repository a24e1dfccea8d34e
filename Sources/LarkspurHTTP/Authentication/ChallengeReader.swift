import LarkspurBytes

/// Splits one field into challenges.
///
/// ```
/// field     = [ challenge ] *( "," [ challenge ] )
/// challenge = scheme [ 1*SP ( token68 / [ parameter ] *( "," [ parameter ] ) ) ]     RFC 9110 11.3
/// ```
///
/// A comma separates both challenges and parameters. After a comma, a token that is followed by `=` begins a parameter;
/// any other token is the scheme of the next challenge.
struct ChallengeReader {
  private let bytes: [UInt8]
  private var position = 0
  /// The scheme of the next challenge, if the reader has already read it.
  private var pending: Head?
  private var isBroken = false

  private struct Head {
    var scheme: String
    /// Whether white space follows the scheme, so that parameters may follow.
    var mayHaveParameters: Bool
  }

  /// The error for a field that breaks the grammar.
  private struct Broken: Error {}

  init(_ field: String) { bytes = Array(field.utf8) }

  /// Returns the next challenge, or `nil` if no further one can be read.
  mutating func next() -> Challenge? {
    while !isBroken {
      do throws(Broken) {
        guard let head = try takeHead() else { return nil }
        if let challenge = try challenge(head) { return challenge }
      } catch {
        isBroken = true
      }
    }
    return nil
  }

  /// Reads a field that is a list of parameters only.
  ///
  /// - Returns: The parameters, or `nil` if the field breaks the grammar or has too many.
  mutating func parameters() -> [Challenge.Parameter]? {
    var parameters: [Challenge.Parameter] = []
    do throws(Broken) {
      while skipSeparators() {
        guard let name = token(), takeEquals() else { return nil }
        parameters.append(try parameter(name))
        guard parameters.count <= Challenge.parametersMax else { return nil }
      }
    } catch {
      return nil
    }
    return parameters
  }

  // MARK: - Challenges

  private mutating func takeHead() throws(Broken) -> Head? {
    if let head = pending {
      pending = nil
      return head
    }
    guard skipSeparators() else { return nil }
    guard let scheme = token() else { throw Broken() }
    return try head(scheme)
  }

  private mutating func head(_ scheme: String) throws(Broken) -> Head {
    let hasSpace = skipWhitespace()
    guard hasSpace || isAtEnd || peek == ASCII.comma else { throw Broken() }
    return Head(scheme: scheme, mayHaveParameters: hasSpace)
  }

  /// Reads the rest of a challenge after its scheme.
  ///
  /// - Returns: The challenge, or `nil` if it is well-formed but repeats a parameter or has too many.
  private mutating func challenge(_ head: Head) throws(Broken) -> Challenge? {
    if head.mayHaveParameters, let token68 = token68() {
      return Challenge(scheme: head.scheme, token68: token68, parameters: [])
    }
    var parameters: [Challenge.Parameter] = []
    var isSound = true
    // A scheme needs a comma before it; the first parameter does not.
    var hasComma = peek == ASCII.comma
    while skipSeparators() {
      guard let name = token() else { throw Broken() }
      guard takeEquals() else {
        guard hasComma else { throw Broken() }
        pending = try self.head(name)
        break
      }
      // `Basic, realm="x"`: the parameter belongs to no challenge.
      guard head.mayHaveParameters else { throw Broken() }
      let parameter = try parameter(name)
      // RFC 9110 11.2: a name occurs once only. With two realms, for example, the intended one is unknown.
      if parameters.count >= Challenge.parametersMax || parameters.contains(where: { $0.name == parameter.name }) {
        isSound = false
      } else {
        parameters.append(parameter)
      }
      hasComma = true
    }
    return isSound ? Challenge(scheme: head.scheme, token68: nil, parameters: parameters) : nil
  }

  /// Reads a parameter's value after its `=`, up to a comma or the end.
  private mutating func parameter(_ name: String) throws(Broken) -> Challenge.Parameter {
    _ = skipWhitespace()
    guard let value = peek == ASCII.quote ? quotedString() : looseToken() else { throw Broken() }
    _ = skipWhitespace()
    guard isAtEnd || peek == ASCII.comma else { throw Broken() }
    return Challenge.Parameter(name: name, value: value)
  }

  // MARK: - Tokens

  private var isAtEnd: Bool { position >= bytes.count }
  private var peek: UInt8? { isAtEnd ? nil : bytes[position] }

  /// Skips white space.
  ///
  /// - Returns: Whether there was any.
  private mutating func skipWhitespace() -> Bool {
    let start = position
    while let byte = peek, ASCII.isWhitespace(byte) { position += 1 }
    return position > start
  }

  /// Skips commas and white space: empty elements of a list are ignored (RFC 9110 5.6.1.2).
  ///
  /// - Returns: Whether something follows.
  private mutating func skipSeparators() -> Bool {
    while let byte = peek, byte == ASCII.comma || ASCII.isWhitespace(byte) { position += 1 }
    return !isAtEnd
  }

  /// Reads a `=`, together with the bad white space before it (RFC 9110 11.2). If there is no `=`, the position does
  /// not change.
  ///
  /// - Returns: Whether there was a `=`.
  private mutating func takeEquals() -> Bool {
    let start = position
    _ = skipWhitespace()
    if peek == ASCII.equals {
      position += 1
      return true
    }
    position = start
    return false
  }

  /// Reads a token and returns it in lower case: schemes and names of parameters are case-insensitive.
  private mutating func token() -> String? {
    let start = position
    while let byte = peek, Self.isTokenByte(byte) { position += 1 }
    guard position > start else { return nil }
    return String(decoding: bytes[start..<position].map(\.asciiLowercased), as: UTF8.self)
  }

  /// Reads a value without quotes. Servers write base64 and paths that way, so each visible character is accepted that
  /// does not end a value.
  private mutating func looseToken() -> String? {
    let start = position
    while let byte = peek, byte > ASCII.space, byte < 0x7f, !Self.endsLooseToken(byte) { position += 1 }
    return position > start ? String(decoding: bytes[start..<position], as: UTF8.self) : nil
  }

  private static func endsLooseToken(_ byte: UInt8) -> Bool {
    byte == ASCII.comma || byte == ASCII.quote || byte == ASCII.backslash || byte == UInt8(ascii: ";")
  }

  /// Reads a quoted string (RFC 9110 5.6.4).
  ///
  /// - Returns: The text, or `nil` if the string does not end or contains a character that is not allowed.
  private mutating func quotedString() -> String? {
    position += 1
    var value: [UInt8] = []
    while let byte = peek {
      position += 1
      switch byte {
      case ASCII.quote: return String(decoding: value, as: UTF8.self)
      case ASCII.backslash:
        guard let escaped = peek, Self.mayBeQuoted(escaped) else { return nil }
        position += 1
        value.append(escaped)
      default:
        guard Self.mayBeQuoted(byte) else { return nil }
        value.append(byte)
      }
    }
    return nil
  }

  private static func mayBeQuoted(_ byte: UInt8) -> Bool { byte == ASCII.tab || byte >= ASCII.space && byte != 0x7f }

  /// Reads a token68.
  ///
  /// - Returns: The token, or `nil` if a parameter or another challenge follows. Then the position does not change.
  private mutating func token68() -> String? {
    let start = position
    while let byte = peek, Self.isToken68Byte(byte) { position += 1 }
    guard position > start else { return nil }
    while peek == ASCII.equals { position += 1 }
    let end = position
    _ = skipWhitespace()
    guard isAtEnd || peek == ASCII.comma else {
      position = start
      return nil
    }
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    ASCII.isDigit(byte) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
  }

  private static func isToken68Byte(_ byte: UInt8) -> Bool { isAlphanumeric(byte) || "-._~+/".utf8.contains(byte) }
}
