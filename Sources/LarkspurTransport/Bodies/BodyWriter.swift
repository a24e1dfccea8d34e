import LarkspurBytes
import LarkspurHTTP

/// Takes the pieces of a request's body from the caller's code, and keeps them until the connection fetches them.
///
/// Theory of operation. The task that sends the request waits for its response, and for room in the socket; the producer
/// runs in a task beside it, which does nothing but fill this queue and wait while it is full. Each sees only the queue:
/// a response that comes early is seen while the producer thinks, and a producer that never ends holds nobody up.
///
/// ```
///   open --producer returns--> ended --fetched--> done
///    |---producer throws, too many or too few bytes--> failed
///    `---the exchange needs no more--> stopped      (from every state; wakes and cancels the producer)
/// ```
///
/// It does not know: sockets, the response. Invariants: it belongs to the loop's thread; once it is not open, `write`
/// only fails; what waits is below `bytesMax` and one piece of each of the producer's own tasks.
public final class BodyWriter: @unchecked Sendable {
  private enum State {
    case open
    case ended
    case failed(BodyFailure)
    case stopped
  }

  /// From so many waiting bytes on, a producer waits until they are fetched.
  public static let bytesMax = 32 * 1024
  /// Smaller pieces are put together: a chunk of its own for each byte would cost six more.
  private static let pieceBytesMin = 4 * 1024

  private let loop: ClientLoop
  private let isChunked: Bool
  /// What is still to be written of a body of known length.
  private(set) var missing: Int?
  private var state = State.open
  private var pieces: [[UInt8]] = []
  private var byteCount = 0
  private var trailers: [(name: String, value: String)] = []
  private var waiting: [Answer<Void>] = []
  /// The channel whose task has found nothing here, and is to be woken.
  private weak var starved: Channel?
  private var task: Task<Void, Never>?

  init(length: Int?, isChunked: Bool, on loop: ClientLoop) {
    missing = length
    self.isChunked = isChunked
    self.loop = loop
  }

  // MARK: - The producer's side

  /// Sends the next piece. Returns when there is room for another one. An empty piece is none.
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
    }
    byteCount += piece.count
    if let last = pieces.indices.last, pieces[last].count + piece.count <= Self.pieceBytesMin {
      pieces[last] += piece
    } else {
      pieces.append(piece)
    }
    wakeStarved()
    while byteCount >= Self.bytesMax, case .open = state {
      let room = Answer<Void>()
      waiting.append(room)
      guard case .answered = await room.outcome(deadline: .never, on: loop) else { throw .cancelled }
    }
  }

  /// Adds a field behind the chunked body. It is checked when the producer returns.
  public func trailer(_ name: String, _ value: String) async {
    guard loop.isCurrent else { return await loop.run { [self] in await trailer(name, value) } }
    trailers.append((name, value))
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
    /// With how many of the coding's own among them.
    case bytes(ofCoding: Int)
    /// The body is complete: there will be no more.
    case end(ofCoding: Int)
    /// Nothing is there yet.
    case nothing
  }

  /// Moves what waits into `output`, with the coding around it.
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
      for room in waiting { room.finish(.answered(())) }
      return .bytes(ofCoding: output.byteCount - before)
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

  /// Whether a fetch would come to something. If not yet, the channel's waiter is woken as soon as it would. (It is asked
  /// before each wait, and not only after a fetch: what was fetched last may have left, and used up the share of the turn.)
  func isReady(waking channel: Channel) -> Bool {
    guard case .open = state, byteCount == 0 else { return true }
    starved = channel
    return false
  }

  /// The exchange needs no more of it.
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

  /// As `stop`, on whatever thread: nobody will fetch anything any more.
  func abandon() { task?.cancel() }
}
