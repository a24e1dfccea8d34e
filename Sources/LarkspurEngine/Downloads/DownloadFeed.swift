import LarkspurBytes
import LarkspurIO
import Synchronization

/// The news of a download for its readers: how often the state has changed, the bytes that are there from the start, and the
/// result. Nothing is queued: a reader gets the newest.
final class DownloadFeed: Sendable {
  typealias Outcome = Result<Download.File, DownloadError>

  private struct Contents {
    var version = 0
    /// The end of the bytes that are there from the first one on.
    var prefixEnd = 0
    /// The positions of the readers of bytes.
    var readers: [Int: Int] = [:]
    var nextReader = 0
    /// The readers that have got bytes which are not there any more.
    var misled: Set<Int> = []
    var outcome: Outcome?
    var waiters: [OneShot<Void>] = []
  }

  private let contents = Mutex(Contents())

  // MARK: - The download's side

  /// Notes a change of the state, and the end of the bytes that are there from the first one on.
  func changed(prefixEnd: Int) {
    change { contents in
      if prefixEnd < contents.prefixEnd {
        for (reader, position) in contents.readers where position > prefixEnd { contents.misled.insert(reader) }
      }
      contents.prefixEnd = prefixEnd
    }
  }

  func finish(_ outcome: Outcome) { change { if $0.outcome == nil { $0.outcome = outcome } } }

  private func change(_ apply: (inout Contents) -> Void) {
    let waiters = contents.withLock { contents in
      apply(&contents)
      contents.version += 1
      defer { contents.waiters = [] }
      return contents.waiters
    }
    for waiter in waiters { waiter.set(()) }
  }

  // MARK: - The readers' side

  /// Waits until `find` returns a value, or the task is cancelled.
  private func wait<Found>(isCancellable: Bool = true, _ find: (inout Contents) -> Found?) async -> Found? {
    while true {
      let waiter = OneShot<Void>()
      let found = contents.withLock { contents -> Found? in
        let found = find(&contents)
        if found == nil { contents.waiters.append(waiter) }
        return found
      }
      if let found { return found }
      if isCancellable {
        await withTaskCancellationHandler {
          _ = await waiter.get()
        } onCancel: {
          waiter.cancel()
        }
        if Task.isCancelled {
          contents.withLock { $0.waiters.removeAll { $0 === waiter } }
          return nil
        }
      } else {
        _ = await waiter.get()
      }
    }
  }

  /// Waits for the end. Cancelling the task does not end the wait.
  func result() async -> Outcome {
    await wait(isCancellable: false) { $0.outcome } ?? .failure(DownloadError(.cancelled, "the download was cancelled"))
  }

  /// Waits for another version than `seen`.
  ///
  /// - Returns: The version, and whether it is the last one; `nil` if the task is cancelled.
  func change(after seen: Int) async -> (version: Int, isOver: Bool)? {
    await wait { $0.version > seen || $0.outcome != nil ? ($0.version, $0.outcome != nil) : nil }
  }

  /// Waits until a time, or until the download is over.
  func rest(until time: ContinuousClock.Instant) async {
    guard contents.withLock({ $0.outcome == nil }) else { return }
    try? await Task.sleep(until: time, clock: .continuous)
  }

  // MARK: - Readers of bytes

  enum Bytes {
    /// The reader may read these.
    case some(Range<Int>)
    /// Bytes that the reader has got are not there any more.
    case misled
    case over(Outcome)
  }

  func addReader() -> Int {
    contents.withLock { contents in
      contents.nextReader += 1
      contents.readers[contents.nextReader] = 0
      return contents.nextReader
    }
  }

  func remove(reader: Int) {
    contents.withLock { contents in
      contents.readers[reader] = nil
      contents.misled.remove(reader)
    }
  }

  /// Waits for bytes at a position. They count as read from now on.
  ///
  /// - Returns: `nil` if the task is cancelled.
  func bytes(at position: Int, upTo countMax: Int, for reader: Int) async -> Bytes? {
    await wait { contents in
      if contents.misled.contains(reader) { return .misled }
      if case .failure? = contents.outcome { return contents.outcome.map { .over($0) } }
      guard contents.prefixEnd > position else { return contents.outcome.map { .over($0) } }
      let range = position..<min(contents.prefixEnd, position + countMax)
      contents.readers[reader] = range.upperBound
      return .some(range)
    }
  }
}

/// A reader of a download's bytes. One task at a time uses it.
final class DownloadReader {
  /// Maximum number of bytes of a piece.
  private static let pieceBytes = 256 * 1024

  private let download: Download
  private let run: DownloadRun
  private let feed: DownloadFeed
  private let number: Int
  private var position = 0
  private var isOver = false
  /// The download's files, or the complete file for a reader that begins after the end.
  private var store: DownloadStore?
  private var file: OpenFile?

  init(_ download: Download, _ run: DownloadRun, _ feed: DownloadFeed) {
    self.download = download
    self.run = run
    self.feed = feed
    number = feed.addReader()
  }

  deinit { feed.remove(reader: number) }

  func next() async throws(DownloadError) -> [UInt8]? {
    guard !isOver else { return nil }
    isOver = true
    switch await feed.bytes(at: position, upTo: Self.pieceBytes, for: number) {
    case .some(let range)?:
      let bytes = try read(range)
      // The part has been cut for another version.
      guard !bytes.isEmpty else { throw misled }
      position += bytes.count
      isOver = false
      return bytes
    case .misled?: throw misled
    case .over(let outcome)?:
      _ = try outcome.get()
      return nil
    case nil: throw DownloadError(.cancelled, "the reader was cancelled", destination: download.plan.destination)
    }
  }

  private func read(_ range: Range<Int>) throws(DownloadError) -> [UInt8] {
    do throws(Errno) {
      if store == nil, file == nil { store = run.store }
      if let store { return try store.read(at: range.lowerBound, atMost: range.count) }
      if file == nil { file = try OpenFile(readingRegular: download.plan.destination) }
      return try file?.read(atMost: range.count) ?? []
    } catch {
      throw DownloadError(error, download.plan)
    }
  }

  private var misled: DownloadError {
    DownloadError(.changing, "bytes that had been delivered were replaced", destination: download.plan.destination)
  }
}
