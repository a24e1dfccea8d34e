import Foundation
import Testing

@testable import Larkspur

@Suite(.timeLimit(.minutes(1))) struct StreamReaderTests {
  /// Is open for ever, and has nothing.
  private final class Empty: InputStream {
    private var status = Stream.Status.notOpen
    private let closed: AsyncStream<Void>.Continuation

    init(_ closed: AsyncStream<Void>.Continuation) {
      self.closed = closed
      super.init(data: Data())
    }

    override func open() { status = .open }
    override func close() {
      status = .closed
      closed.yield()
      closed.finish()
    }
    override var streamStatus: Stream.Status { status }
    override var hasBytesAvailable: Bool { false }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int { 0 }
  }

  /// Nobody asks it any more.
  @Test func aStreamThatHasNothingIsGivenUp() async {
    let (closings, closed) = AsyncStream<Void>.makeStream()
    let reader = StreamReader(Empty(closed))
    let reading = Task { try await reader.next() }
    reading.cancel()
    await #expect(throws: CancellationError.self) { try await reading.value }
    reader.close()
    var count = 0
    for await _ in closings { count += 1 }
    #expect(count == 1)
  }
}
