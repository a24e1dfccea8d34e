import Foundation
import Synchronization
import Testing

@testable import Larkspur

/// The label of a queue, or of the current queue for `nil`. The Swift module of Dispatch lacks this function.
@_silgen_name("dispatch_queue_get_label") private func labelOfQueue(_ queue: OpaquePointer?) -> UnsafePointer<CChar>

@Suite(.timeLimit(.minutes(1))) struct StreamReaderTests {
  /// A stream without bytes that signals each read and counts how often it is closed.
  private class Watched: InputStream {
    let closings = Mutex(0)
    private let status = Mutex(Stream.Status.notOpen)
    private let asked: AsyncStream<Void>.Continuation

    init(_ asked: AsyncStream<Void>.Continuation) {
      self.asked = asked
      super.init(data: Data())
    }

    override func open() { status.withLock { $0 = .open } }
    override func close() {
      status.withLock { $0 = .closed }
      closings.withLock { $0 += 1 }
    }
    override var streamStatus: Stream.Status { status.withLock { $0 } }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
      asked.yield()
      return 0
    }
  }

  /// An open stream that never has bytes.
  private final class Empty: Watched {
    override var hasBytesAvailable: Bool { false }
  }

  /// A stream whose reads block until `end` is signalled.
  private class Waiting: Watched {
    let end = DispatchSemaphore(value: 0)

    override var hasBytesAvailable: Bool { true }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
      defer { end.wait() }
      return super.read(buffer, maxLength: len)
    }
  }

  /// One end of a pipe, as programs write them: a read blocks until there are bytes or the stream is closed.
  private final class Pipe: Waiting {
    override func close() {
      // The reader must not close the stream on a thread of Swift's pool: a program's `close` may wait for its `read`.
      #expect(String(cString: labelOfQueue(nil)).hasPrefix("larkspur."))
      super.close()
      end.signal()
    }
  }

  /// A stream that may be used on one thread at a time only.
  private final class Ready: Waiting, URLSessionNonblockingInputStream {
    var readsWithoutBlocking: Bool { false }
  }

  /// Cancels a read after the stream was asked `count` times.
  ///
  /// - Parameter endRead: Makes a blocked read return after the cancellation.
  private func cancelRead<S: Watched>(
    _ make: (AsyncStream<Void>.Continuation) -> S, after count: Int, endRead: (S) async -> Void = { _ in }
  ) async {
    let (askings, asked) = AsyncStream<Void>.makeStream()
    let stream = make(asked)
    let reader = StreamReader(stream, lastReadMilliseconds: 1)
    let reading = Task { try await reader.next() }
    for await _ in askings.prefix(count) {}
    reading.cancel()
    await endRead(stream)
    await #expect(throws: CancellationError.self) { try await reading.value }
    reader.close()
    // This call runs after the close in the reader's queue.
    await #expect(throws: CancellationError.self) { try await reader.next() }
    #expect(stream.closings.withLock { $0 } == 1)
  }

  /// A cancelled reader stops asking a stream without bytes.
  @Test func aStreamWithoutBytesIsCancelled() async { await cancelRead(Empty.init, after: 2) }

  /// A cancelled reader closes a stream whose read blocks: the read would otherwise occupy a thread forever.
  @Test func aStreamWithABlockedReadIsClosed() async { await cancelRead(Pipe.init, after: 1) }

  @Test func aReadyStreamIsNotClosedWhileItIsRead() async {
    await cancelRead(Ready.init, after: 1) { stream in
      // 20 ms is longer than the reader waits for other streams (`lastReadMilliseconds`).
      await withCheckedContinuation { continuation in
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { continuation.resume() }
      }
      #expect(stream.closings.withLock { $0 } == 0)
      stream.end.signal()
    }
  }
}
