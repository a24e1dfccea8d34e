import Foundation
import Larkspur

/// The destination of an operation's content: a buffer, or the program's stream. Only one load uses it at a time, and
/// so only one thread.
final class OperationOutput: @unchecked Sendable {
  /// The program's stream, or `nil` to use the buffer.
  let stream: OutputStream?
  private var buffer = Data()
  /// Number of bytes of the current content so far.
  private(set) var count: Int64 = 0
  /// Requests the rest of the current content, or `nil` if a pause makes the content start over.
  var continuation: RangeContinuation?
  /// Maximum number of bytes written from the start position of the content, by this and earlier loads.
  private var countMax: Int64 = 0
  /// The start of the current content in a stream to memory, which cannot seek.
  private var memoryStart = 0

  init(_ stream: OutputStream?) { self.stream = stream }

  func open() {
    if let stream, stream.streamStatus == .notOpen { stream.open() }
  }

  func write(_ data: Data) throws {
    if let stream {
      guard stream.writeAll(data) else {
        throw StreamBytes.error(of: stream)
          ?? URLError.make(.cannotWriteToFile, "the output stream takes no more bytes")
      }
    } else {
      buffer.append(data)
    }
    count += Int64(data.count)
    countMax = max(countMax, count)
  }

  /// Starts the content again from the beginning. Throws if the stream cannot seek.
  func rewind() throws {
    defer { count = 0 }
    guard let stream, count > 0 else { return buffer.removeAll() }
    if let data = stream.property(forKey: .dataWrittenToMemoryStreamKey) as? Data {
      memoryStart = data.count
      countMax = 0
      return
    }
    guard stream.property(forKey: .fileCurrentOffsetKey) != nil,
      stream.setProperty(NSNumber(value: 0), forKey: .fileCurrentOffsetKey)
    else { throw URLError.make(.cannotWriteToFile, "the output stream cannot start again") }
  }

  func close() { stream?.close() }

  /// Returns the content if it is in memory. Throws if the stream still has bytes of an earlier, longer content after
  /// the current one.
  func finish() throws -> Data? {
    defer { close() }
    guard let stream else { return buffer }
    guard count == countMax else {
      throw URLError.make(.cannotWriteToFile, "the output stream has more bytes than the content")
    }
    let data = stream.property(forKey: .dataWrittenToMemoryStreamKey) as? Data
    return data.map { Data($0.dropFirst(memoryStart)) }
  }
}
