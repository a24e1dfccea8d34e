import LarkspurBytes
import LarkspurIO

/// The body of a request.
public enum RequestBody: Sendable {
  case none
  case bytes([UInt8])
  /// Bytes that stay in their owner's memory: `count` bytes, of which the closure returns a copy of a range. Pieces are
  /// copied only as they leave, so that the body is never in memory twice. The request's head has to announce the
  /// length. The closure runs on the loop's thread, must not block, and may be called again for any range.
  indirect case lent(count: Int, @Sendable (Range<Int>) -> [UInt8])
  /// A part of a regular file: `length` bytes from `offset` on. Without `unchangedSince` the bytes go from the file to the
  /// socket by `sendfile`, without passing through user memory, except with TLS. With it they are read: a packet then has
  /// the bytes of that time, whatever happens to the file before it leaves. If the size of the file or the time of its
  /// modification changes before all bytes have been sent, the exchange fails. Reading blocks the loop.
  indirect case file(OpenFile, offset: Int, length: Int, unchangedSince: FileStatus? = nil)
  /// The bytes that the closure writes until it returns. Without a length the request's head has to announce the
  /// chunked coding. The closure runs on the loop's thread and must not block it. Its task is cancelled when the
  /// exchange needs no more of the body.
  indirect case produced(length: Int?, @Sendable (BodyWriter) async throws -> Void)

  /// Whether the body can be sent again after sending has begun.
  var isRepeatable: Bool { if case .produced = self { false } else { true } }

  /// Whether the body is so short that it usually leaves at once.
  public var isLittle: Bool {
    switch self {
    case .none: true
    case .bytes(let bytes): bytes.count <= Self.littleBytesMax
    case .lent, .file, .produced: false
    }
  }

  private static let littleBytesMax = 16 * 1024
}

/// An error of a request's or a response's body.
public enum BodyFailure: Error, Hashable, Sendable {
  /// The file has changed, or is smaller than announced.
  case fileChanged
  case fileUnreadable(Errno)
  /// The file for the response's body cannot be written, for example because the disk is full.
  case fileUnwritable(Errno)
  /// The producer ended with this number of bytes missing.
  case tooShort(missing: Int)
  /// The producer wrote more bytes than announced.
  case tooLong
  /// The producer threw an error with this description.
  case producerFailed(String)
  /// The producer's trailers cannot be sent.
  case trailersInvalid(String)
  /// The server changed the protocol before it had the whole request.
  case notWaitedFor
}

extension BodyFailure: CustomStringConvertible {
  public var description: String {
    switch self {
    case .fileChanged: "the file has changed, or is smaller than it should be"
    case .fileUnreadable(let error): "the file cannot be read: \(error)"
    case .fileUnwritable(let error): "the file cannot be written: \(error)"
    case .tooShort(let missing): "the producer ended \(missing) bytes too early"
    case .tooLong: "the producer wrote more than it had announced"
    case .producerFailed(let reason): "the producer failed: \(reason)"
    case .trailersInvalid(let reason): "the trailers cannot be sent: \(reason)"
    case .notWaitedFor: "the server changed the protocol before it had the whole request"
    }
  }
}
