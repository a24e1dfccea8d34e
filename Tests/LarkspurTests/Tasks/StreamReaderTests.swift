import Foundation
import Synchronization
import Testing

@testable import Larkspur

@Suite(.timeLimit(.minutes(1))) struct StreamReaderTests {
  /// Is open for ever, and has nothing.
  private final class Empty: InputStream {
    let closings = Mutex(0)
    private var status = Stream.Status.notOpen
    private let asked: AsyncStream<Void>.Continuation

    init(_ asked: AsyncStream<Void>.Continuation) {
      self.asked = asked
      super.init(data: Data())
    }

    override func open() { status = .open }
    override func close() {
      status = .closed
      closings.withLock { $0 += 1 }
    }
    override var streamStatus: Stream.Status { status }
    override var hasBytesAvailable: Bool { false }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
      asked.yield()
      return 0
    }
  }

  /// One end of a pipe, as programs write them: who reads waits until there is something, or until it is closed.
  private final class Pipe: InputStream {
    private let asked: AsyncStream<Void>.Continuation
    private let end = DispatchSemaphore(value: 0)
    let closings = Mutex(0)

    init(_ asked: AsyncStream<Void>.Continuation) {
      self.asked = asked
      super.init(data: Data())
    }

    override func open() {}
    override func close() {
      closings.withLock { $0 += 1 }
      end.signal()
    }
    override var streamStatus: Stream.Status { closings.withLock { $0 } > 0 ? .closed : .open }
    override var hasBytesAvailable: Bool { true }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
      asked.yield()
      end.wait()
      return 0
    }
  }

  /// Nobody else would end the read, which keeps a thread.
  @Test func aStreamWhoseReadWaitsIsClosed() async {
    let (askings, asked) = AsyncStream<Void>.makeStream()
    let stream = Pipe(asked)
    let reader = StreamReader(stream)
    let reading = Task { try await reader.next() }
    for await _ in askings.prefix(1) {}
    reading.cancel()
    await #expect(throws: CancellationError.self) { try await reading.value }
    reader.close()
    // Behind that in its queue.
    await #expect(throws: CancellationError.self) { try await reader.next() }
    #expect(stream.closings.withLock { $0 } == 1)
  }

  /// Nobody asks it any more.
  @Test func aStreamThatHasNothingIsGivenUp() async {
    let (askings, asked) = AsyncStream<Void>.makeStream()
    let stream = Empty(asked)
    let reader = StreamReader(stream)
    let reading = Task { try await reader.next() }
    for await _ in askings.prefix(2) {}
    reading.cancel()
    await #expect(throws: CancellationError.self) { try await reading.value }
    reader.close()
    // Behind that in its queue.
    await #expect(throws: CancellationError.self) { try await reader.next() }
    #expect(stream.closings.withLock { $0 } == 1)
  }
}
