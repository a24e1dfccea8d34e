import LarkspurBytes

/// Reads field lines up to the empty line that ends them: the second part of a head, and a trailer section.
///
/// Theory of operation. The owner has to keep the bytes of the whole section together until it is complete. The parser
/// keeps its position, and continues there when more bytes arrive. A field goes into the table at its line feed. If the
/// next line begins with white space, it is a fold (RFC 9112 5.2), and the field's value is extended in place.
///
/// ```
///  lineStart --CR--> lastLF --LF--> complete
///    |  ^  \--SP/HTAB--> leadingSpace            (a fold of the previous field)
///    v  |                   v
///  name -> leadingSpace -> value --CR--> lineLF --LF--> lineStart
/// ```
///
/// In a section whose lines end with LF alone, LF takes the place of CR and LF, and CR is an error (RFC 9112 2.2).
///
/// Invariants: all positions count from the section's first byte. A search never looks past a limit, so that an error
/// depends only on the bytes, and not on how they are split between calls.
struct FieldLineParser {
  private enum Phase {
    case lineStart, name, leadingSpace, value, lineLF, lastLF
  }

  /// How all lines of a section end.
  enum LineEnd {
    case crlf, lf
    /// The first line decides.
    case undecided
  }

  /// The maximum size of the section, and the error for a larger one.
  struct Bounds {
    var sectionBytesMax: Int
    var tooLarge: ResponseError
  }

  private var phase = Phase.lineStart
  private var lineEnd: LineEnd
  private(set) var position = 0
  private var lineStart = 0
  private var nameEnd = 0
  private var valueStart = 0
  private var valueEnd = 0
  private var isFold = false

  /// - Parameters:
  ///   - position: Where the first field line starts: after the status line, or 0.
  ///   - lineEnd: How the section's lines end.
  init(from position: Int, lineEnd: LineEnd) {
    self.position = position
    self.lineEnd = lineEnd
  }

  /// Continues reading at `position`.
  ///
  /// - Parameter base: The index of the section's first byte in `bytes`.
  /// - Returns: Whether the section is complete; `position` is then its size.
  mutating func parse(
    _ bytes: Span<UInt8>, base: Int, bounds: Bounds, limits: Limits, into table: inout FieldTable
  ) throws(ResponseError) -> Bool {
    while true {
      if phase == .lineStart, lineEnd == .crlf {
        parsePlainLines(bytes, base: base, bounds: bounds, limits: limits, into: &table)
      }
      let index = base + position
      // An incomplete section that has reached its limit can only become too large.
      guard position < bounds.sectionBytesMax else { throw bounds.tooLarge }
      guard index < bytes.count else { return false }
      // No search looks past this index.
      var window: Int { base + min(lineStart + limits.fieldLineBytesMax + 1, bounds.sectionBytesMax) }

      switch phase {
      case .lineStart:
        switch bytes[index] {
        case ASCII.cr where lineEnd == .crlf && index + 1 < bytes.count && bytes[index + 1] == ASCII.lf:
          guard position + 2 <= bounds.sectionBytesMax else { throw bounds.tooLarge }
          position += 2
          return true
        case ASCII.cr:
          phase = .lastLF
          position += 1
        case ASCII.lf where lineEnd != .crlf:
          position += 1
          return true
        case ASCII.space, ASCII.tab:
          guard table.count > 0 else { throw .whitespaceBeforeFirstField }
          isFold = true
          phase = .leadingSpace
        default:
          guard table.count < limits.fieldsMax else { throw .tooManyFields(limit: limits.fieldsMax) }
          isFold = false
          lineStart = position
          phase = .name
        }

      case .name:
        let stop = Scan.endOfToken(in: bytes, from: index, to: window)
        position = stop - base
        guard stop < window else { throw limitReached(limits, bounds) }
        guard stop < bytes.count else { return false }
        switch bytes[stop] {
        case ASCII.colon where position > lineStart:
          nameEnd = position
          position += 1
          phase = .leadingSpace
        case ASCII.space, ASCII.tab: throw .whitespaceInFieldName
        case ASCII.lf where lineEnd == .crlf: throw .bareLF
        default: throw .fieldNameInvalid
        }

      case .leadingSpace:
        var stop = index
        while stop < min(window, bytes.count), bytes[stop] == ASCII.space || bytes[stop] == ASCII.tab { stop += 1 }
        position = stop - base
        guard stop < window else { throw limitReached(limits, bounds) }
        guard stop < bytes.count else { return false }
        valueStart = position
        phase = .value

      case .value:
        let stop = Scan.endOfFieldValue(in: bytes, from: index, to: window)
        position = stop - base
        guard stop < window else { throw limitReached(limits, bounds) }
        guard stop < bytes.count else { return false }
        var end = stop
        while end > base + valueStart, bytes[end - 1] == ASCII.space || bytes[end - 1] == ASCII.tab { end -= 1 }
        valueEnd = end - base
        position += 1
        switch bytes[stop] {
        case ASCII.cr: phase = .lineLF
        case ASCII.lf where lineEnd != .crlf:
          lineEnd = .lf
          endLine(into: &table)
        case ASCII.lf: throw .bareLF
        default: throw .fieldValueInvalid
        }

      case .lineLF:
        try checkLFBehindCR(bytes[index])
        lineEnd = .crlf
        position += 1
        endLine(into: &table)

      case .lastLF:
        try checkLFBehindCR(bytes[index])
        position += 1
        return true
      }
    }
  }

  private func checkLFBehindCR(_ byte: UInt8) throws(ResponseError) {
    guard byte == ASCII.lf else { throw .bareCR }
    // A line before this one ended with LF alone.
    guard lineEnd != .lf else { throw .bareLF }
  }

  private mutating func endLine(into table: inout FieldTable) {
    if !isFold {
      table.append(FieldPosition(name: lineStart..<nameEnd, value: valueStart..<valueEnd))
    } else if valueStart < valueEnd {
      table.extendLast(from: valueStart, to: valueEnd)
    }
    phase = .lineStart
  }

  /// Reads complete, plain lines, each in one step. Leaves the first other line, such as one with an error, to the
  /// state machine, which starts at that line's first byte.
  ///
  /// Performance: most lines are plain.
  private mutating func parsePlainLines(
    _ bytes: Span<UInt8>, base: Int, bounds: Bounds, limits: Limits, into table: inout FieldTable
  ) {
    let start = base + position
    let next = Scan.plainFieldLines(
      in: bytes, from: start, base: base, end: base + bounds.sectionBytesMax, lineBytesMax: limits.fieldLineBytesMax,
      fieldsMax: limits.fieldsMax, into: &table)
    position = next - base
  }

  /// Returns the error for the limit that a search has reached.
  private func limitReached(_ limits: Limits, _ bounds: Bounds) -> ResponseError {
    position > lineStart + limits.fieldLineBytesMax
      ? .fieldLineTooLong(limit: limits.fieldLineBytesMax) : bounds.tooLarge
  }
}
