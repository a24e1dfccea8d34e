import Foundation
import Synchronization
import Testing

@testable import Larkspur

/// Dispatch's own, which its module for Swift leaves out. Nil: of the queue that this is called on.
@_silgen_name("dispatch_queue_get_label") private func labelOfQueue(_ queue: OpaquePointer?) -> UnsafePointer<CChar>

@Suite(.timeLimit(.minutes(1))) struct StreamReaderTests {
  /// Says when it is read, has nothing, and counts how often it is closed.
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

  /// Is open for ever, and has nothing.
  private final class Empty: Watched {
    override var hasBytesAvailable: Bool { false }
  }

  /// Its reads wait until somebody ends them.
  private class Waiting: Watched {
    let end = DispatchSemaphore(value: 0)

    override var hasBytesAvailable: Bool { true }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
      defer { end.wait() }
      return super.read(buffer, maxLength: len)
    }
  }

  /// One end of a pipe, as programs write them: who reads waits until there is something, or until it is closed.
  private final class Pipe: Waiting {
    override func close() {
      // Not on a thread that is meant for short work, Swift's pool's: a program's own `close` may wait for its `read`.
      #expect(String(cString: labelOfQueue(nil)).hasPrefix("larkspur."))
      super.close()
      end.signal()
    }
  }

  /// Is used on one thread at a time.
  private final class Ready: Waiting, URLSessionReadyStream {
    var isReadWithoutWaiting: Bool { false }
  }

  /// Cancels a read of the stream when it has been asked so often.
  ///
  /// - Parameter endRead: What it takes for the read to end then.
  private func giveUp<S: Watched>(
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
    // Behind that in its queue.
    await #expect(throws: CancellationError.self) { try await reader.next() }
    #expect(stream.closings.withLock { $0 } == 1)
  }

  /// Nobody asks it any more.
  @Test func aStreamThatHasNothingIsGivenUp() async { await giveUp(Empty.init, after: 2) }

  /// Nobody else would end the read, which keeps a thread.
  @Test func aStreamWhoseReadWaitsIsClosed() async { await giveUp(Pipe.init, after: 1) }

  @Test func aReadyStreamIsNotClosedWhileItIsRead() async {
    await giveUp(Ready.init, after: 1) { stream in
      // Longer than others have.
      await withCheckedContinuation { continuation in
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { continuation.resume() }
      }
      #expect(stream.closings.withLock { $0 } == 0)
      stream.end.signal()
    }
  }
}
