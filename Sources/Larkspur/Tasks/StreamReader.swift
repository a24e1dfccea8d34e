import Dispatch
import Foundation
import Synchronization

/// Reads an input stream on a queue of its own: its reads may block, for as long as they like.
final class StreamReader: @unchecked Sendable {
  private let stream: InputStream
  private let queue: DispatchQueue
  /// Whether it may be closed while it is read: Foundation's own are for one thread at a time, and so may those be that know of
  /// `URLSessionReadyStream`.
  private let isClosedWhileRead: Bool
  /// How long a read may go on when nobody wants it any more, in milliseconds.
  private let lastReadMilliseconds: Int
  private let isClosed = Atomic(false)
  // The queue's.
  private var isOpen = false
  private var emptyReads = 0

  /// How much is read at a time. It is all that a reader holds, and that only while it reads: there may be hundreds.
  private static let pieceBytes = 32 * 1024
  /// How long a stream that is open and has nothing is left alone, in milliseconds.
  private static let pauseMilliseconds = 10
  /// So many reads in a row that bring nothing are the end of a stream that promises more and never says that it is over.
  private static let emptyReadsMax = 100

  init(_ stream: InputStream, lastReadMilliseconds: Int = 1_000) {
    self.stream = stream
    self.lastReadMilliseconds = lastReadMilliseconds
    let ready = stream as? any URLSessionReadyStream
    isClosedWhileRead = ready == nil && type(of: stream) != InputStream.self
    // A queue by itself may have a thread for itself. Where nobody waits a few threads are enough for all.
    let isPrompt = ready?.isReadWithoutWaiting == true
    queue = DispatchQueue(label: "larkspur.body-stream", target: isPrompt ? .global() : nil)
  }

  /// The next bytes; nil at the end. Throws what the stream fails with.
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
    // A stream that has nothing would be asked for ever.
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
      // A full piece is handed on as it is; a small one does not keep the room of a large one.
      return continuation.resume(returning: count == piece.count ? piece : Array(piece[..<count]))
    }
    if count < 0 {
      return continuation.resume(throwing: StreamBytes.error(of: stream) ?? URLError(.cannotOpenFile))
    }
    switch stream.streamStatus {
    // Nothing yet is not the end: a stream of the program's own may be waiting for somebody itself.
    case .opening, .open, .reading:
      // One that says it has bytes and gives none is believed for a while only.
      if stream.hasBytesAvailable {
        emptyReads += 1
        guard emptyReads < Self.emptyReadsMax else { return continuation.resume(returning: nil) }
      }
      queue.asyncAfter(deadline: .now() + .milliseconds(Self.pauseMilliseconds)) { [self] in
        read(for: continuation)
      }
    case .error: continuation.resume(throwing: stream.streamError ?? URLError(.cannotOpenFile))
    default: continuation.resume(returning: nil)
    }
  }

  private var isOver: Bool { isClosed.load(ordering: .sequentiallyConsistent) }

  /// Closes the stream, behind what is being read.
  func close() { queue.async { [self] in closeNow() } }

  /// Nobody wants any more what is being read. But the read may be waiting for just this: where it goes on for long, the stream is
  /// closed meanwhile. (From a thread by itself: the program's `close` may wait for its read.)
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
