import Foundation
import Larkspur

/// Cuts the bytes of standard input into messages at line feeds. The last line needs no line feed.
package struct SocketLines {
  package enum Failure: Error, Hashable, CustomStringConvertible {
    /// Only binary messages may have any bytes (RFC 6455 5.6).
    case notUTF8(line: Int)
    case tooLong(line: Int)

    package var description: String {
      switch self {
      case .notUTF8(let line): "line \(line) of standard input is not UTF-8 (--binary sends any bytes)"
      case .tooLong(let line): "line \(line) of standard input has more than \(SocketLines.lineBytesMax) bytes"
      }
    }
  }

  /// Maximum length of a line in bytes, so that an input without line feeds does not fill the memory.
  package static let lineBytesMax = Socket.messageBytesMax

  private static let lineFeed = UInt8(ascii: "\n")

  private let isBinary: Bool
  private var bytes: [UInt8] = []
  /// The start of the line that is next.
  private var start = 0
  /// The number of bytes that have been searched for line feeds.
  private var searched = 0
  /// The number of lines before the next one.
  private var lines = 0

  package init(isBinary: Bool) { self.isBinary = isBinary }

  package mutating func append(_ piece: [UInt8]) {
    bytes.removeSubrange(..<start)
    searched -= start
    start = 0
    bytes += piece
  }

  /// - Returns: The next line as a message, or `nil` if it is not complete.
  package mutating func next() throws(Failure) -> URLSessionWebSocketTask.Message? {
    guard let end = bytes[searched...].firstIndex(of: Self.lineFeed) else {
      searched = bytes.count
      guard bytes.count - start <= Self.lineBytesMax else { throw .tooLong(line: lines + 1) }
      return nil
    }
    let message = try message(bytes[start..<end])
    start = end + 1
    searched = start
    return message
  }

  /// - Returns: The bytes behind the last line feed as a message, or `nil` if there are none.
  package mutating func last() throws(Failure) -> URLSessionWebSocketTask.Message? {
    guard start < bytes.count else { return nil }
    defer { start = bytes.count }
    return try message(bytes[start...])
  }

  private mutating func message(_ line: ArraySlice<UInt8>) throws(Failure) -> URLSessionWebSocketTask.Message {
    lines += 1
    guard line.count <= Self.lineBytesMax else { throw .tooLong(line: lines) }
    if isBinary { return .data(Data(line)) }
    guard let text = String(validating: line, as: UTF8.self) else { throw .notUTF8(line: lines) }
    return .string(text)
  }
}
