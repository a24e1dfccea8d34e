import Foundation
import Synchronization

/// A body of segments, as that of a form: bytes, files and streams in order. A value type; it can be read as often as its
/// streams can be read.
package struct SegmentedBody: Sendable {
  package var segments: [BodySegment]
  /// Maximum number of bytes in one read.
  package var packetBytesMax = Int.max
  /// Time to wait after each read, in seconds.
  package var delay: TimeInterval = 0
  /// Makes the error of a stream that cannot deliver the body, of a reason and the error beneath.
  package var error: @Sendable (_ reason: String, _ underlying: (any Error)?) -> any Error = {
    URLError.make(.requestBodyStreamExhausted, $0, underlying: $1)
  }

  package init(segments: [BodySegment]) { self.segments = segments }

  /// Creates a multipart body (RFC 2046 5.1.1).
  ///
  /// - Parameter parts: Each head ends with its empty line.
  package init(boundary: String, parts: [(head: [UInt8], content: BodySegment)]) {
    segments = parts.flatMap { head, content -> [BodySegment] in
      [.bytes(Array("--\(boundary)\r\n".utf8) + head), content, .bytes(Array("\r\n".utf8))]
    }
    segments.append(.bytes(Array("--\(boundary)--\r\n".utf8)))
  }

  /// Escapes the characters that would end a name in a part's head, or its line (WHATWG HTML, multipart form data). All
  /// others are sent as UTF-8.
  package static func escaped(_ name: String) -> String {
    // By scalars, because a quote with a combining mark behind it is another `Character`.
    name.unicodeScalars.map { scalar in
      switch scalar {
      case "\r": "%0D"
      case "\n": "%0A"
      case "\"": "%22"
      default: String(scalar)
      }
    }.joined()
  }

  /// Number of bytes. Callers may state any length for their streams, so the sum saturates at `Int64.max`.
  package var count: Int64 {
    segments.reduce(0) { sum, segment in
      let (sum, overflows) = sum.addingReportingOverflow(segment.count)
      return overflows ? .max : sum
    }
  }
}

/// A segment of a body, and its source.
package enum BodySegment: Sendable {
  case bytes([UInt8])
  case data(Data)
  /// The first `count` bytes of a regular file, even if its length changes meanwhile.
  case file(URL, count: Int64)
  case stream(SharedStream, count: Int64)

  package var count: Int64 {
    switch self {
    case .bytes(let bytes): Int64(bytes.count)
    case .data(let data): Int64(data.count)
    case .file(_, let count), .stream(_, let count): count
    }
  }

  /// A stream that reads the segment, or `nil` if the segment needs no stream, or its stream has been taken already.
  fileprivate var stream: InputStream? {
    switch self {
    case .file(let url, _): InputStream(url: url)
    case .stream(let shared, _): shared.take()
    case .bytes, .data: nil
    }
  }
}

/// A caller's stream, which all copies of a body share. If it cannot be copied, only one of them can read it.
package final class SharedStream: Sendable {
  private let stream: Mutex<UncheckedSendable<InputStream>?>

  package init(_ stream: InputStream) {
    let carried = UncheckedSendable(stream)
    self.stream = Mutex(carried)
  }

  /// - Returns: A copy of the caller's stream, or else the stream itself, or `nil` if it has been taken already.
  fileprivate func take() -> InputStream? {
    let taken = stream.withLock { held in
      let taken = held
      if !(taken?.value is any NSCopying) { held = nil }
      return taken
    }
    return taken?.value.copyOrSelf
  }
}

extension InputStream {
  /// A copy that reads from the beginning, or, if the stream cannot be copied, the stream itself.
  package var copyOrSelf: InputStream {
    (self as? any NSCopying).flatMap { $0.copy(with: nil) as? InputStream } ?? self
  }
}

/// Reads a body of segments. Has at most one file open, and does not buffer its bytes.
///
/// A copy reads from the beginning, regardless of the position of the original.
package final class SegmentedBodyStream: TargetStream, NSCopying, URLSessionNonblockingInputStream {
  private let body: SegmentedBody
  private let pause: @Sendable (TimeInterval) -> Void
  private var status = Stream.Status.notOpen
  private var problem: (any Error)?
  /// The position: the index of the segment, and the offset in it.
  private var index = 0
  private var offset: Int64 = 0
  /// The stream of the current segment.
  private var source: InputStream?

  /// - Parameter pause: Waits for a number of seconds. Tests replace it.
  package init(
    _ body: SegmentedBody, pause: @escaping @Sendable (TimeInterval) -> Void = { Thread.sleep(forTimeInterval: $0) }
  ) {
    self.body = body
    self.pause = pause
    super.init(data: Data())
  }

  deinit { closeSource() }

  package func copy(with zone: NSZone? = nil) -> Any { SegmentedBodyStream(body, pause: pause) }

  package override func copy() -> Any { copy(with: nil) }

  package override func open() {
    if status == .notOpen { status = .open }
  }

  package override func close() {
    closeSource()
    status = .closed
  }

  /// Whether reads return without waiting: not if a part is a caller's stream, or if there is a delay.
  package var readsWithoutBlocking: Bool {
    body.delay == 0 && !body.segments.contains { if case .stream = $0 { true } else { false } }
  }

  package override var streamStatus: Stream.Status { status }
  package override var streamError: (any Error)? { problem }
  /// A part that is a stream may have no bytes yet.
  package override var hasBytesAvailable: Bool { status == .open && source?.hasBytesAvailable != false }

  package override func fill(_ target: inout StreamTarget) -> Bool {
    guard status == .open else { return status != .error }
    let wanted = min(target.room, body.packetBytesMax)
    do {
      while target.count < wanted, index < body.segments.count {
        guard try read(body.segments[index], into: &target, max: wanted - target.count) else { break }
      }
    } catch {
      problem = error
      status = .error
      closeSource()
      // Deliver the bytes that came before the error first.
      return target.count > 0
    }
    if index == body.segments.count { status = .atEnd }
    if target.count > 0, body.delay > 0 { pause(body.delay) }
    return true
  }

  /// - Returns: `false` if the segment has no bytes yet.
  private func read(_ segment: BodySegment, into target: inout StreamTarget, max wanted: Int) throws -> Bool {
    let rest = segment.count - offset
    guard rest > 0 else {
      try checkEmptiness(of: segment)
      advance()
      return true
    }
    switch segment {
    case .bytes(let bytes):
      offset += Int64(target.append(bytes.dropFirst(Int(offset)).prefix(wanted)))
    case .data(let data):
      offset += Int64(target.append(data.dropFirst(Int(offset)).prefix(wanted)))
    case .file, .stream:
      let taken = try readStream(of: segment, into: &target, max: Int(min(Int64(wanted), rest)), of: rest)
      if taken == 0 { return false }
      offset += taken
    }
    if offset == segment.count { advance() }
    return true
  }

  /// Throws if a file of size 0 has content after all, as those in `/proc` do: sending it as empty would be wrong.
  private func checkEmptiness(of segment: BodySegment) throws {
    guard case .file(let url, count: 0) = segment else { return }
    let source = self.source ?? segment.stream
    self.source = source
    guard let source, StreamBytes.isRegularFile(url) else { return }
    if source.streamStatus == .notOpen { source.open() }
    var byte: [UInt8] = [0]
    guard StreamBytes.read(source, into: &byte) <= 0 else {
      throw body.error("\(url.path) is larger than it said.", nil)
    }
  }

  /// - Returns: Number of bytes read, or 0 if no byte is available yet.
  private func readStream(
    of segment: BodySegment, into target: inout StreamTarget, max wanted: Int, of rest: Int64
  ) throws -> Int64 {
    guard let stream = source ?? segment.stream else {
      throw body.error("A part of the form is a stream, and has been read already.", nil)
    }
    if source == nil, case .file(let url, _) = segment, !StreamBytes.isRegularFile(url) {
      throw shortage(rest, nil)
    }
    source = stream
    if stream.streamStatus == .notOpen { stream.open() }
    let taken = target.append(from: stream, max: wanted)
    if taken == 0, [.opening, .open, .reading].contains(stream.streamStatus), !stream.hasBytesAvailable { return 0 }
    guard taken > 0 else { throw shortage(rest, StreamBytes.error(of: stream)) }
    return Int64(taken)
  }

  /// The error for a stream or a file that is shorter than its stated length, which has been sent already.
  private func shortage(_ rest: Int64, _ error: (any Error)?) -> any Error {
    body.error("A part of the form ended \(rest) bytes before its length.", error)
  }

  private func advance() {
    closeSource()
    index += 1
    offset = 0
  }

  private func closeSource() {
    source?.close()
    source = nil
  }
}
