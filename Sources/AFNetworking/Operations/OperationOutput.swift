import Foundation
import Larkspur

/// Where an operation's content goes: a buffer of its own, or the stream of its owner's. One load at a time uses it,
/// and so one thread.
final class OperationOutput: @unchecked Sendable {
  /// Nil: the buffer.
  let stream: OutputStream?
  private var buffer = Data()
  /// How many bytes of the present content have been taken.
  private(set) var count: Int64 = 0
  /// How many have ever been written from the stream's beginning on.
  private var countMax: Int64 = 0
  /// Where the present content begins in a stream to memory, which cannot go back.
  private var memoryStart = 0

  init(_ stream: OutputStream?) { self.stream = stream }

  func open() {
    if let stream, stream.streamStatus == .notOpen { stream.open() }
  }

  func write(_ data: Data) throws {
    if let stream {
      guard stream.writeAll(data) else { throw StreamBytes.error(of: stream) ?? URLError(.cannotWriteToFile) }
    } else {
      buffer.append(data)
    }
    count += Int64(data.count)
    countMax = max(countMax, count)
  }

  /// The content begins anew. Throws if the stream cannot go back.
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
    else { throw URLError(.cannotWriteToFile) }
  }

  func close() { stream?.close() }

  /// The content, if it is in memory. Throws if the stream still has something of an earlier content behind this one.
  func finish() throws -> Data? {
    defer { close() }
    guard let stream else { return buffer }
    guard count == countMax else { throw URLError(.cannotWriteToFile) }
    let data = stream.property(forKey: .dataWrittenToMemoryStreamKey) as? Data
    return data.map { Data($0.dropFirst(memoryStart)) }
  }
}
