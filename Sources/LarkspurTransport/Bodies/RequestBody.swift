import LarkspurIO

/// What a request carries.
public enum RequestBody: Sendable {
  case none
  case bytes([UInt8])
  /// So many bytes of a regular file, from an offset on. They go from the file to the socket without a stop in our memory
  /// (`sendfile`), but for TLS. A file that does not keep its size until they have left fails the exchange. Reading it
  /// blocks the loop.
  indirect case file(OpenFile, offset: Int, length: Int)
  /// What the closure writes, until it returns. Without a length the head has to announce the chunked coding. The closure
  /// runs on the loop's thread and must not block it; it is cancelled when the exchange needs no more of it.
  indirect case produced(length: Int?, @Sendable (BodyWriter) async throws -> Void)

  /// Whether it can be sent again after it has begun.
  var isRepeatable: Bool { if case .produced = self { false } else { true } }
}

/// Why a body could not be had.
public enum BodyFailure: Error, Hashable, Sendable {
  /// The file is not as large any more as it was, or never was as large as announced.
  case fileChanged
  case fileUnreadable(Errno)
  /// The file that a response goes into cannot be written: the disk is full, for example.
  case fileUnwritable(Errno)
  /// The producer ended before so many bytes.
  case tooShort(missing: Int)
  /// The producer wrote more than it had announced.
  case tooLong
  /// The producer threw an error, which said this.
  case producerFailed(String)
  /// The producer's trailers cannot be sent.
  case trailersInvalid(String)
  /// The server changed the protocol before it had the whole request.
  case notWaitedFor
}

extension BodyFailure: CustomStringConvertible {
  public var description: String {
    switch self {
    case .fileChanged: "the file does not have the size that it had, or should have"
    case .fileUnreadable(let error): "the file cannot be read: \(error)"
    case .fileUnwritable(let error): "the file cannot be written: \(error)"
    case .tooShort(let missing): "the producer ended \(missing) bytes too early"
    case .tooLong: "the producer wrote more than it had announced"
    case .producerFailed(let words): "the producer failed: \(words)"
    case .trailersInvalid(let words): "the trailers cannot be sent: \(words)"
    case .notWaitedFor: "the server changed the protocol before it had the whole request"
    }
  }
}
