import LarkspurBytes

/// Decodes the chunked transfer coding (RFC 9112 7.1) of a body.
///
/// Theory of operation. The decoder reads chunk heads byte by byte and stores no byte of them, so that they may be
/// split anywhere. It reports data as ranges. The owner has to keep the bytes of the trailer section together,
/// like those of a head, until the section is complete: `consumed` stays at its first byte meanwhile.
///
/// ```
///  size --';'--> extension --CR--> sizeLF --LF, size > 0--> data -> dataCR -> dataLF -> size
///     \--CR----------------------/      \---LF, size == 0--> trailers -> complete
/// ```
///
/// The decoder does not guess: white space around a size, a bare LF after it, more than sixteen digits, and data that
/// is not followed by CRLF are errors. Each of these has been used to make two parsers see two different bodies.
public struct ChunkedDecoder {
  public enum Event: Hashable {
    case needMore
    case data(Range<Int>)
    /// The trailer section is complete; its fields are in `trailers` and start at `trailerBase`.
    case complete(trailerBase: Int)
  }

  private enum State {
    case size
    case `extension`(ChunkExtensionGrammar)
    case sizeLF
    case data
    case dataCR
    case dataLF
    case trailers(FieldLineParser)
    case complete
  }

  private static let sizeDigitsMax = 16

  private var state = State.size
  private var size: UInt64 = 0
  private var digits = 0
  private var remaining = 0
  private var extensionBytes = 0
  private let trailersMayEndWithLF: Bool

  /// - Parameter trailersMayEndWithLF: Whether all lines of the trailer section may end with LF alone, because the
  ///   lines of the response's head do. The lines of chunks end with CRLF in any case.
  public init(trailersMayEndWithLF: Bool = false) { self.trailersMayEndWithLF = trailersMayEndWithLF }

  /// The part of the response that an end of the connection would cut off now.
  var truncationPoint: ResponseError.TruncationPoint {
    if case .trailers = state { return .trailers }
    return .chunkedBody
  }

  /// Reads from index `consumed`, and moves it past the bytes that are no longer needed.
  public mutating func next(
    in bytes: Span<UInt8>, consumed: inout Int, limits: Limits, trailers: inout FieldTable
  ) throws(ResponseError) -> Event {
    while true {
      switch state {
      case .data:
        guard consumed < bytes.count else { return .needMore }
        let start = consumed
        consumed += min(remaining, bytes.count - start)
        remaining -= consumed - start
        if remaining == 0 { state = .dataCR }
        return .data(start..<consumed)

      case .trailers(var lines):
        let base = consumed
        // The limit does not count the empty line.
        let bounds = FieldLineParser.Bounds(
          sectionBytesMax: limits.trailerBytesMax + 2, tooLarge: .trailersTooLarge(limit: limits.trailerBytesMax))
        let isComplete = try lines.parse(bytes, base: base, bounds: bounds, limits: limits, into: &trailers)
        guard isComplete else {
          state = .trailers(lines)
          return .needMore
        }
        consumed = base + lines.position
        state = .complete
        return .complete(trailerBase: base)

      case .complete:
        return .needMore

      case .size, .extension, .sizeLF, .dataCR, .dataLF:
        guard consumed < bytes.count else { return .needMore }
        try read(bytes[consumed], limits: limits)
        consumed += 1
      }
    }
  }

  /// Reads one byte of a chunk's head or of the CRLF after its data.
  private mutating func read(_ byte: UInt8, limits: Limits) throws(ResponseError) {
    switch state {
    case .size:
      if let digit = ASCII.hexDigit(byte) {
        guard digits < Self.sizeDigitsMax else { throw .chunkSizeTooLarge }
        digits += 1
        size = size << 4 | digit
      } else if digits > 0, byte == ASCII.cr {
        state = .sizeLF
      } else if digits > 0, byte == UInt8(ascii: ";") {
        try countExtensionByte(limits)
        state = .extension(ChunkExtensionGrammar())
      } else {
        throw byte == ASCII.lf && digits > 0 ? .bareLF : .chunkSizeInvalid
      }

    case .extension(var grammar):
      if byte == ASCII.cr, grammar.mayEnd {
        state = .sizeLF
      } else {
        try countExtensionByte(limits)
        guard grammar.accept(byte) else { throw .chunkExtensionInvalid }
        state = .extension(grammar)
      }

    case .sizeLF:
      guard byte == ASCII.lf else { throw .bareCR }
      guard let size = Int(exactly: size) else { throw .chunkSizeTooLarge }
      remaining = size
      state = size == 0 ? .trailers(FieldLineParser(from: 0, lineEnd: trailerLineEnd)) : .data
      self.size = 0
      digits = 0

    case .dataCR:
      guard byte == ASCII.cr else { throw .chunkEndMissing }
      state = .dataLF

    case .dataLF:
      guard byte == ASCII.lf else { throw .chunkEndMissing }
      state = .size

    case .data, .trailers, .complete:
      break
    }
  }

  private var trailerLineEnd: FieldLineParser.LineEnd { trailersMayEndWithLF ? .undecided : .crlf }

  private mutating func countExtensionByte(_ limits: Limits) throws(ResponseError) {
    guard extensionBytes < limits.chunkExtensionBytesMax else {
      throw .chunkExtensionsTooLarge(limit: limits.chunkExtensionBytesMax)
    }
    extensionBytes += 1
  }
}

/// Recognizer of chunk extensions, one byte at a time, from the byte after the first semicolon.
///
/// `chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`
private struct ChunkExtensionGrammar {
  private enum State {
    case beforeName, name, afterName, beforeValue, token, quoted, escaped, afterQuoted, afterValue
  }

  private var state = State.beforeName

  /// Whether the line may end here. The grammar has no white space at the end of a line.
  var mayEnd: Bool {
    switch state {
    case .name, .token, .afterQuoted: true
    default: false
    }
  }

  mutating func accept(_ byte: UInt8) -> Bool {
    let isSpace = byte == ASCII.space || byte == ASCII.tab
    switch state {
    case .beforeName:
      if isSpace { return true }
      state = .name
      return Scan.isToken(byte)
    case .name:
      if Scan.isToken(byte) { return true }
      return accept(byte, isSpace, after: .afterName, mayHaveValue: true)
    case .afterName:
      return isSpace || accept(byte, false, after: .afterName, mayHaveValue: true)
    case .beforeValue:
      if isSpace { return true }
      state = byte == UInt8(ascii: "\"") ? .quoted : .token
      return byte == UInt8(ascii: "\"") || Scan.isToken(byte)
    case .token:
      if Scan.isToken(byte) { return true }
      return accept(byte, isSpace, after: .afterValue, mayHaveValue: false)
    case .quoted:
      if byte == UInt8(ascii: "\\") { state = .escaped }
      if byte == UInt8(ascii: "\"") { state = .afterQuoted }
      return Scan.isFieldValueByte(byte)
    case .escaped:
      state = .quoted
      return Scan.isFieldValueByte(byte)
    case .afterQuoted, .afterValue:
      return isSpace && state == .afterValue || accept(byte, isSpace, after: .afterValue, mayHaveValue: false)
    }
  }

  /// Accepts a byte after a name or a value: white space, the semicolon of the next extension, and `=` after a name.
  private mutating func accept(_ byte: UInt8, _ isSpace: Bool, after: State, mayHaveValue: Bool) -> Bool {
    if isSpace {
      state = after
    } else if byte == UInt8(ascii: ";") {
      state = .beforeName
    } else if byte == UInt8(ascii: "="), mayHaveValue {
      state = .beforeValue
    } else {
      return false
    }
    return true
  }
}
