import Foundation
import Larkspur
import Synchronization

/// A form's body: what is in it, one after the other. A value; it can be read as often as its streams can.
struct MultipartBody {
  var segments: [MultipartSegment]
  /// How many bytes are read at a time, at most.
  var packetBytesMax = Int.max
  /// What is waited after each read, in seconds.
  var delay: TimeInterval = 0

  /// Bytes. A caller may say of its streams that they are as long as he likes.
  var count: Int64 {
    segments.reduce(0) { sum, segment in
      let (sum, overflows) = sum.addingReportingOverflow(segment.count)
      return overflows ? .max : sum
    }
  }
}

/// A piece of a body, and where it is.
enum MultipartSegment {
  case bytes([UInt8])
  case data(Data)
  case file(URL, count: Int64)
  case stream(SharedStream, count: Int64)

  var count: Int64 {
    switch self {
    case .bytes(let bytes): Int64(bytes.count)
    case .data(let data): Int64(data.count)
    case .file(_, let count), .stream(_, let count): count
    }
  }

  /// What its bytes are read from. Nil: it has been taken already, or there is no need of one.
  var stream: InputStream? {
    switch self {
    case .file(let url, _): InputStream(url: url)
    case .stream(let shared, _): shared.take()
    case .bytes, .data: nil
    }
  }
}

/// A caller's stream, which is in all copies of a body, and can be read for one of them.
final class SharedStream: Sendable {
  private let stream: Mutex<Carried<InputStream>?>

  init(_ stream: InputStream) {
    let carried = Carried(stream)
    self.stream = Mutex(carried)
  }

  /// A stream to read: a copy of the caller's, or else that itself. Nil: it has been taken.
  func take() -> InputStream? {
    let taken = stream.withLock { held in
      let taken = held
      if !(taken?.value is any NSCopying) { held = nil }
      return taken
    }
    return taken?.value.copyOrSelf
  }
}

extension InputStream {
  /// One to read from the beginning, if it can be copied. Else it can be read once only.
  var copyOrSelf: InputStream { (self as? any NSCopying).flatMap { $0.copy(with: nil) as? InputStream } ?? self }
}

/// Reads a form's body. It holds one open file at most, and no bytes of it.
///
/// A copy reads from the beginning, however far this one has been read.
final class MultipartBodyStream: TargetStream, NSCopying, URLSessionReadyStream {
  private let body: MultipartBody
  private let pause: @Sendable (TimeInterval) -> Void
  private var status = Stream.Status.notOpen
  private var problem: (any Error)?
  /// Where it is being read.
  private var index = 0
  private var offset: Int64 = 0
  /// Of the segment that is being read.
  private var source: InputStream?

  /// - Parameter pause: Waits for so many seconds; only tests have a reason to do it otherwise.
  init(_ body: MultipartBody, pause: @escaping @Sendable (TimeInterval) -> Void = { Thread.sleep(forTimeInterval: $0) })
  {
    self.body = body
    self.pause = pause
    super.init(data: Data())
  }

  deinit { letGo() }

  func copy(with zone: NSZone? = nil) -> Any { MultipartBodyStream(body, pause: pause) }

  override func copy() -> Any { copy(with: nil) }

  override func open() {
    if status == .notOpen { status = .open }
  }

  override func close() {
    letGo()
    status = .closed
  }

  /// What is in it is there, unless somebody's stream is to bring it, or it is to be slow.
  var isReadWithoutWaiting: Bool {
    body.delay == 0 && !body.segments.contains { if case .stream = $0 { true } else { false } }
  }

  override var streamStatus: Stream.Status { status }
  override var streamError: (any Error)? { problem }
  /// A part that is a stream may have nothing yet.
  override var hasBytesAvailable: Bool { status == .open && source?.hasBytesAvailable != false }

  override func fill(_ target: inout StreamTarget) -> Bool {
    guard status == .open else { return status != .error }
    let wanted = min(target.room, body.packetBytesMax)
    do {
      while target.count < wanted, index < body.segments.count {
        guard try read(body.segments[index], into: &target, max: wanted - target.count) else { break }
      }
    } catch {
      problem = error
      status = .error
      letGo()
      // What has been read before is given first.
      return target.count > 0
    }
    if index == body.segments.count { status = .atEnd }
    if target.count > 0, body.delay > 0 { pause(body.delay) }
    return true
  }

  /// False: there is nothing yet.
  private func read(_ segment: MultipartSegment, into target: inout StreamTarget, max wanted: Int) throws -> Bool {
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

  /// A file that says that it is empty and is not (as those in `/proc` are) is not sent as if it were.
  private func checkEmptiness(of segment: MultipartSegment) throws {
    guard case .file(let url, count: 0) = segment else { return }
    let source = self.source ?? segment.stream
    self.source = source
    guard let source, StreamBytes.isRegularFile(url) else { return }
    if source.streamStatus == .notOpen { source.open() }
    var byte: [UInt8] = [0]
    guard StreamBytes.read(source, into: &byte) <= 0 else {
      throw RequestProblem.make(.requestBodyStreamExhausted, "\(url.path) is larger than it said.")
    }
  }

  /// Zero: there is nothing yet.
  private func readStream(
    of segment: MultipartSegment, into target: inout StreamTarget, max wanted: Int, of rest: Int64
  ) throws -> Int64 {
    guard let stream = source ?? segment.stream else {
      throw RequestProblem.make(
        .requestBodyStreamExhausted, "A part of the form is a stream, and has been read already.")
    }
    if source == nil, case .file(let url, _) = segment, !StreamBytes.isRegularFile(url) {
      throw Self.shortage(rest, nil)
    }
    source = stream
    if stream.streamStatus == .notOpen { stream.open() }
    let taken = target.append(from: stream, max: wanted)
    if taken == 0, [.opening, .open, .reading].contains(stream.streamStatus), !stream.hasBytesAvailable { return 0 }
    guard taken > 0 else { throw Self.shortage(rest, StreamBytes.error(of: stream)) }
    return Int64(taken)
  }

  /// A stream has told its length, and a file has been looked at: what they lack cannot be made up.
  private static func shortage(_ rest: Int64, _ error: (any Error)?) -> NSError {
    RequestProblem.make(
      .requestBodyStreamExhausted, "A part of the form ended \(rest) bytes before its length.", underlying: error)
  }

  private func advance() {
    letGo()
    index += 1
    offset = 0
  }

  private func letGo() {
    source?.close()
    source = nil
  }
}
