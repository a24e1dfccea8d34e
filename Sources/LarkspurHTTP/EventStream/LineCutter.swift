import LarkspurBytes

/// Cuts a stream of bytes into lines. A line ends with LF, CR or CR LF. A CR ends its line at once, even as the last byte of
/// a piece, and an LF behind it is skipped when it arrives.
///
/// A line that is complete within one piece is found in place. The beginning of a line that spans pieces is copied. The lines
/// do not depend on how the stream is cut.
package struct LineCutter: Sendable {
  /// A line has more bytes than `lineBytesMax`.
  package struct TooLong: Error {}

  /// A buffer up to this size in bytes is kept from one line to the next. A larger one is released.
  private static let keptBytesMax = 64 * 1024

  /// Maximum length of a line in bytes, without its ending.
  package let lineBytesMax: Int
  /// The beginning of a line that spans pieces.
  package private(set) var beginning: [UInt8] = []
  /// Whether the latest line ended with CR, so that an LF belongs to its ending.
  private var skipsLineFeed = false

  package init(lineBytesMax: Int) { self.lineBytesMax = lineBytesMax }

  /// Finds the end of the next line.
  ///
  /// - Parameters:
  ///   - bytes: A piece of the stream.
  ///   - position: The index of the first unread byte of the piece; moved behind the bytes that have been read.
  /// - Returns: The part of the line in this piece, which follows `beginning`; or `nil` if the whole piece has been read.
  package mutating func next(in bytes: Span<UInt8>, from position: inout Int) throws(TooLong) -> Range<Int>? {
    guard position < bytes.count else { return nil }
    if skipsLineFeed {
      skipsLineFeed = false
      if bytes[position] == ASCII.lf { position += 1 }
      guard position < bytes.count else { return nil }
    }
    let start = position
    let end = Scan.endOfLine(in: bytes, from: start, to: bytes.count)
    guard end - start <= lineBytesMax - beginning.count else { throw TooLong() }
    guard end < bytes.count else {
      beginning.append(copying: bytes.extracting(start..<end))
      position = end
      return nil
    }
    skipsLineFeed = bytes[end] == ASCII.cr
    position = end + 1
    return start..<end
  }

  /// Adds bytes to the beginning of the current line.
  mutating func begin(with bytes: ArraySlice<UInt8>) { beginning.append(contentsOf: bytes) }

  /// Takes the whole line, whose end has been found.
  package mutating func take(endingWith part: Span<UInt8>) -> [UInt8] {
    var whole: [UInt8] = []
    swap(&whole, &beginning)
    whole.append(copying: part)
    return whole
  }

  /// Takes a line's buffer back for the next lines.
  package mutating func reuse(_ buffer: consuming [UInt8]) {
    guard buffer.capacity <= Self.keptBytesMax else { return }
    buffer.removeAll(keepingCapacity: true)
    beginning = buffer
  }

  mutating func clear() { beginning = [] }
}
