import LarkspurBytes
import LarkspurHTTP

/// A queue for the pieces of a request's body, filled by the caller's code and emptied by the connection.
///
/// Theory of operation. The task that sends the request waits for its response and for room in the socket. The producer
/// runs in another task, which fills this queue and waits while the queue is full. The two tasks share only the queue:
/// an early response is handled while the producer computes, and a producer that never ends blocks nothing else.
///
/// ```
///   open --producer returns, or all bytes of a known length fetched--> ended --fetched--> done
///   |---producer throws, too many or too few bytes--> failed
///   `---the exchange needs no more--> stopped      (from every state but failed; wakes and cancels the producer)
/// ```
///
/// A body of known length is over with its last byte (RFC 9112 6.2), whatever the producer still waits for.
///
/// A writer does not depend on sockets or the response. Invariants: it belongs to the loop's thread; once it is not
/// open, `write` only fails; the queue holds less than `bytesMax` and one piece for each of the producer's tasks.
public final class BodyWriter: @unchecked Sendable {
  private enum State {
    case open
    case ended
    case failed(BodyFailure)
    case stopped
  }

  /// The number of queued bytes from which the producer waits until they are fetched.
  public static let bytesMax = 32 * 1024
  /// Performance: pieces are joined up to this size, so that the queue and each send have fewer parts.
  private static let pieceBytesMin = 4 * 1024

  /// The first bytes of the body, at most `copyBytesMax`, for an observer.
  private(set) var copied: [UInt8] = []
  var copyBytesMax = 0

  private let loop: ClientLoop
  private let isChunked: Bool
  /// The number of bytes that a body of known length still lacks.
  private(set) var missing: Int?
  /// Whether the producer has written the last byte of a known length, with nothing to follow it.
  private var isWhole = false
  private var state = State.open
  private var pieces: [[UInt8]] = []
  private var byteCount = 0
  private var trailers: FieldList = []
  private var waiting: [LoopPromise<Void>] = []
  /// The channel to wake when there is something to fetch.
  private weak var starved: Channel?
  private var task: Task<Void, Never>?

  init(length: Int?, isChunked: Bool, on loop: ClientLoop) {
    missing = length
    self.isChunked = isChunked
    self.loop = loop
  }

  // MARK: - The producer's side

  /// Queues the next piece. Returns when there is room for the next piece. An empty piece is ignored.
  ///
  /// - Throws: The failure, or `cancelled` if the exchange needs no more of the body.
  public func write(_ piece: [UInt8]) async throws(TransportError) {
    guard loop.isCurrent else {
      return try await loop.run { [self] () async throws(TransportError) in try await write(piece) }
    }
    guard case .open = state, !Task.isCancelled else { throw ended }
    guard !piece.isEmpty else { return }
    if let missing {
      guard piece.count <= missing else {
        fail(.tooLong)
        throw ended
      }
      self.missing = missing - piece.count
      isWhole = missing == piece.count && !isChunked
    }
    byteCount += piece.count
    if copied.count < copyBytesMax { copied += piece.prefix(copyBytesMax - copied.count) }
    if let last = pieces.indices.last, pieces[last].count + piece.count <= Self.pieceBytesMin {
      pieces[last] += piece
    } else {
      pieces.append(piece)
    }
    wakeStarved()
    while byteCount >= Self.bytesMax, case .open = state {
      let room = LoopPromise<Void>()
      waiting.append(room)
      guard case .fulfilled = await room.outcome(deadline: .never, on: loop) else { throw .cancelled }
    }
  }

  /// Queues the piece that a closure returns on the loop's thread: several tasks may share the source of the pieces,
  /// and their pieces stay in order.
  public func write(_ next: @escaping @Sendable () -> [UInt8]) async throws(TransportError) {
    guard loop.isCurrent else {
      return try await loop.run { [self] () async throws(TransportError) in try await write(next()) }
    }
    try await write(next())
  }

  /// Adds a trailer field to a chunked body. The field is checked after the producer has returned; an invalid one fails
  /// the exchange.
  public func trailer(_ name: String, _ value: String) async {
    guard loop.isCurrent else { return await loop.run { [self] in await trailer(name, value) } }
    trailers.append(Field(name, value))
  }

  private var ended: TransportError {
    if case .failed(let failure) = state { .bodyFailed(failure) } else { .cancelled }
  }

  private func wakeStarved() {
    guard let channel = starved else { return }
    starved = nil
    channel.becameReady()
  }

  private func fail(_ failure: BodyFailure) {
    guard case .open = state else { return }
    state = .failed(failure)
    pieces = []
    byteCount = 0
    wakeStarved()
  }

  private func end() {
    guard case .open = state else { return }
    if let missing, missing > 0 { return fail(.tooShort(missing: missing)) }
    guard isChunked || trailers.isEmpty else { return fail(.trailersInvalid("the body is not chunked")) }
    state = .ended
    wakeStarved()
  }

  // MARK: - The connection's side

  func start(_ produce: @escaping @Sendable (BodyWriter) async throws -> Void) {
    task = Task(executorPreference: loop) { @concurrent [self] in
      do {
        try await produce(self)
        end()
      } catch {
        fail(.producerFailed(String(describing: error)))
      }
    }
  }

  enum Fetched {
    /// Bytes were moved, and this number of bytes of the chunked coding.
    case bytes(ofCoding: Int)
    /// The body is complete.
    case end(ofCoding: Int)
    /// Nothing has been queued yet.
    case nothing
  }

  /// Moves the queued pieces into `output`, with the chunked coding around them.
  func fetch(into output: inout ByteQueue) throws(BodyFailure) -> Fetched {
    if byteCount > 0 {
      let before = output.byteCount + byteCount
      if isChunked { output.append(ChunkedEncoder.start(ofChunk: byteCount)) }
      for piece in pieces { output.append(piece) }
      if isChunked { output.append(ChunkedEncoder.endOfChunk) }
      pieces = []
      byteCount = 0
      let waiting = waiting
      self.waiting = []
      for room in waiting { room.finish(.fulfilled(())) }
      return .bytes(ofCoding: output.byteCount - before)
    }
    if isWhole {
      end()
      abandon()
    }
    switch state {
    case .open: return .nothing
    case .ended:
      guard isChunked else { return .end(ofCoding: 0) }
      let before = output.byteCount
      do throws(RequestError) {
        output.append(try ChunkedEncoder.end(trailers: trailers))
      } catch {
        throw .trailersInvalid("\(error)")
      }
      return .end(ofCoding: output.byteCount - before)
    case .failed(let failure): throw failure
    case .stopped: return .nothing
    }
  }

  /// Whether a fetch would return something. If not, the channel's subscriber is woken as soon as it would.
  ///
  /// The connection calls this before each wait, and not only after a fetch: the bytes fetched last may have been sent
  /// and may have used up the channel's share of the tick.
  func isReady(waking channel: Channel) -> Bool {
    guard case .open = state, byteCount == 0, !isWhole else { return true }
    starved = channel
    return false
  }

  /// Ends the body, because the exchange needs no more of it.
  func stop() {
    if case .failed = state {} else { state = .stopped }
    starved = nil
    pieces = []
    byteCount = 0
    task?.cancel()
    task = nil
    for room in waiting { room.finish(.cancelled) }
    waiting = []
  }

  /// Cancels the producer, on any thread. Called when nothing will be fetched any more: the body is over, or the
  /// connection is released.
  func abandon() { task?.cancel() }
}
