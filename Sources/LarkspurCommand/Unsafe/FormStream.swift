import Foundation
import Larkspur
import LarkspurIO

/// A stream of pieces one after another, bytes and files. Files are opened and read only as far as reads require.
///
/// Used on one thread at a time, like all streams.
final class FormStream: InputStream, URLSessionNonblockingInputStream {
  enum Segment: Sendable {
    case bytes([UInt8])
    /// The first `count` bytes of a file, even if its length changes meanwhile.
    case file(String, count: Int)

    var count: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .file(_, let count): count
      }
    }
  }

  private let segments: [Segment]
  private var index = 0
  /// The position in the current piece.
  private var offset = 0
  private var file: OpenFile?
  private var status = Stream.Status.notOpen
  private var failure: (any Error)?

  init(_ segments: [Segment]) {
    self.segments = segments
    super.init(data: Data())
  }

  override func open() { status = .open }

  override func close() {
    status = .closed
    file = nil
  }

  var readsWithoutBlocking: Bool { true }
  override var streamStatus: Stream.Status { status }
  override var streamError: (any Error)? { failure }
  override var hasBytesAvailable: Bool { status == .open }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
    guard status == .open else { return status == .error ? -1 : 0 }
    do {
      let bytes = try next(atMost: maxLength)
      if bytes.isEmpty { status = .atEnd }
      // Safe: the caller lends `maxLength` bytes for the call, and there are no more than that.
      _ = unsafe UnsafeMutableBufferPointer(start: buffer, count: maxLength).update(fromContentsOf: bytes)
      return bytes.count
    } catch {
      failure = error
      status = .error
      return -1
    }
  }

  /// - Returns: The next bytes, or an empty array at the end.
  private func next(atMost count: Int) throws -> [UInt8] {
    while index < segments.count {
      let segment = segments[index]
      let rest = min(segment.count - offset, count)
      guard rest > 0 else {
        (index, offset, file) = (index + 1, 0, nil)
        continue
      }
      let bytes: [UInt8]
      switch segment {
      case .bytes(let all): bytes = Array(all[offset..<offset + rest])
      case .file(let path, _):
        let open = try file ?? OpenFile(reading: path)
        file = open
        bytes = try open.read(atMost: rest)
        // The file is shorter now than when the form's length was computed.
        if bytes.isEmpty { throw URLError(.cannotOpenFile) }
      }
      offset += bytes.count
      return bytes
    }
    return []
  }
}
