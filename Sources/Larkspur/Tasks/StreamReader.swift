import Dispatch
import Foundation
import Synchronization

/// Reads an input stream on a dedicated queue, because the stream's reads may block for any time.
final class StreamReader: @unchecked Sendable {
  private let stream: InputStream
  private let queue: DispatchQueue
  /// Whether the stream may be closed during a read. Foundation's own streams must be used on one thread at a time, and
  /// so must each `URLSessionNonblockingInputStream`.
  private let isClosedWhileRead: Bool
  /// How long a read may continue after a cancellation, in milliseconds.
  private let lastReadMilliseconds: Int
  private let isClosed = Atomic(false)
  // Used on `queue` only.
  private var isOpen = false
  private var emptyReads = 0

  /// Maximum number of bytes of a read. A reader has no other buffer, and has this one only during a read, because
  /// there may be hundreds of readers.
  private static let pieceBytes = 32 * 1024
  /// Time between two reads of an open stream that has no bytes, in milliseconds.
  private static let pauseMilliseconds = 10
  /// Number of reads in a row that return nothing although the stream reports available bytes, after which the stream
  /// counts as ended.
  private static let emptyReadsMax = 100

  init(_ stream: InputStream, lastReadMilliseconds: Int = 1_000) {
    self.stream = stream
    self.lastReadMilliseconds = lastReadMilliseconds
    let ready = stream as? any URLSessionNonblockingInputStream
    isClosedWhileRead = ready == nil && type(of: stream) != InputStream.self
    // A queue without a target may occupy a separate thread. Streams whose reads do not wait share the threads of the
    // global queue.
    let isPrompt = ready?.readsWithoutBlocking == true
    queue = DispatchQueue(label: "larkspur.body-stream", target: isPrompt ? .global() : nil)
  }

  /// Returns the next bytes, or `nil` at the end.
  ///
  /// - Throws: The stream's error, or `CancellationError` after the stream has been closed.
  func next() async throws -> [UInt8]? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        queue.async { [self] in read(for: continuation) }
      }
    } onCancel: {
      cancel()
    }
  }

  private func read(for continuation: CheckedContinuation<[UInt8]?, any Error>) {
    // Without this check, a stream that has nothing would be read again and again after its close.
    guard !isOver else { return continuation.resume(throwing: CancellationError()) }
    if !isOpen {
      isOpen = true
      if stream.streamStatus == .notOpen { stream.open() }
    }
    var piece = [UInt8](repeating: 0, count: Self.pieceBytes)
    let count = StreamBytes.read(stream, into: &piece)
    guard !isOver else { return continuation.resume(throwing: CancellationError()) }
    if count > 0 {
      emptyReads = 0
      // A full buffer is returned as it is. A small piece is copied, so that it does not keep the memory of a large
      // one.
      return continuation.resume(returning: count == piece.count ? piece : Array(piece[..<count]))
    }
    if count < 0 {
      return continuation.resume(throwing: failure)
    }
    switch stream.streamStatus {
    // A stream that has nothing yet has not ended: a program's stream subclass may be waiting itself.
    case .opening, .open, .reading:
      // Limit how often a stream may report bytes and return none.
      if stream.hasBytesAvailable {
        emptyReads += 1
        guard emptyReads < Self.emptyReadsMax else { return continuation.resume(returning: nil) }
      }
      queue.asyncAfter(deadline: .now() + .milliseconds(Self.pauseMilliseconds)) { [self] in
        read(for: continuation)
      }
    case .error: continuation.resume(throwing: failure)
    default: continuation.resume(returning: nil)
    }
  }

  private var failure: any Error {
    StreamBytes.error(of: stream) ?? URLError.make(.cannotOpenFile, "the stream of the body failed")
  }

  private var isOver: Bool { isClosed.load(ordering: .sequentiallyConsistent) }

  /// Closes the stream after the read in progress.
  func close() { queue.async { [self] in closeNow() } }

  /// Closes the stream after the read in progress, whose bytes are no longer wanted. A read that waits for the close
  /// itself may take long: the stream is then closed during the read, on another queue, because the program's `close()`
  /// may wait for its read.
  private func cancel() {
    close()
    guard isClosedWhileRead else { return }
    let queue = DispatchQueue(label: "larkspur.body-stream.last-read")
    queue.asyncAfter(deadline: .now() + .milliseconds(lastReadMilliseconds)) { [weak self] in self?.closeNow() }
  }

  private func closeNow() {
    if !isClosed.exchange(true, ordering: .sequentiallyConsistent) { stream.close() }
  }
}
