import LarkspurBytes

/// A file that is being downloaded, over several connections and from several mirrors. A session or a client starts it.
///
/// ```swift
/// let download = session.download(DownloadPlan("https://example.org/model.bin", to: "/data/model.bin"))
/// for await state in download.states { print(state.received, state.total ?? 0, state.rate) }
/// let file = try await download.value
/// ```
///
/// The file gets its name only when it is whole, has its checksum, and has reached the disk. Until then its bytes are in a
/// file beside it, from which the next download of the same plan continues, also after the process was killed.
///
/// The download runs until its end, until ``cancel()``, or until the last reference to it, to its sequences and to their
/// iterators is released. Any thread may use it.
public final class Download: Sendable {
  /// The plan of the download.
  public let plan: DownloadPlan
  private let run: DownloadRun
  private let feed: DownloadFeed

  /// Starts a download.
  package init(_ plan: DownloadPlan, by client: some DownloadClient) {
    self.plan = plan
    feed = DownloadFeed()
    run = DownloadRun(plan, client, feed)
    run.begin()
  }

  deinit { run.cancel() }

  // MARK: - The result

  /// The file, which is whole, verified, on the disk, and under its name.
  public struct File: Hashable, Sendable {
    /// The path, as in the plan.
    public var path: String
    /// The size in bytes.
    public var size: Int
    /// The number of bytes that this download received. Less than `size` if an earlier one had left some, and more if some
    /// were fetched twice.
    public var received: Int
  }

  /// Waits for the end of the download, and returns the file. Cancelling the waiting task cancels the download.
  ///
  /// After an error, the download has released its files: another download of the same plan may start at once.
  public var value: File {
    get async throws(DownloadError) {
      let result = await withTaskCancellationHandler {
        await feed.result()
      } onCancel: {
        run.cancel()
      }
      return try withExtendedLifetime(self) { () throws(DownloadError) in try result.get() }
    }
  }

  // MARK: - Control

  /// Ends the download. The bytes that have arrived are synced, and the next download of the plan continues them.
  /// ``value`` throws ``DownloadError/Code/cancelled`` when that is done.
  public func cancel() { run.cancel() }

  /// Ends the requests, and syncs the bytes that have arrived. The download keeps its files.
  public func pause() { run.pause() }

  /// Continues a download that is paused.
  public func resume() { run.resume() }

  // MARK: - The state

  /// The progress of a download.
  public struct State: Hashable, Sendable {
    /// The part of its work that a download is at.
    public enum Phase: String, Hashable, Sendable {
      /// The files are opened, and the record of an earlier download is read.
      case opening
      /// Requests are made, or wait for their next attempt.
      case loading
      /// The download was paused.
      case paused
      /// All bytes have arrived, and are compared with their checksum.
      case verifying
      /// The file gets its name.
      case installing
      /// The file is there.
      case complete
      /// The download has failed, or was cancelled.
      case failed
    }

    /// The part of its work that the download is at.
    public var phase = Phase.opening
    /// The size of the file in bytes, or `nil` while it is unknown.
    public var total: Int?
    /// The number of bytes that are there, including those of earlier downloads.
    public var received = 0
    /// The number of bytes that are there and synced. After a kill of the process, the next download continues from them.
    public var kept = 0
    /// The ranges of bytes that are there, in order.
    public var pieces: [Range<Int>] = []
    /// The number of bytes that are received each second.
    public var rate = 0.0
    /// The time up to the end at the current rate, or `nil` if it is unknown.
    public var remaining: Duration?
    /// The requests that are running.
    public var lanes: [Lane] = []
  }

  /// A request of a download.
  public struct Lane: Hashable, Sendable {
    /// The number of the request, counted from 1 and never used again.
    public var number: Int
    /// The URL of the mirror, as in the plan.
    public var url: String
    /// The first byte that the request is for.
    public var first: Int
    /// The end of the bytes that the request is for, or `nil` while the size is unknown.
    public var end: Int?
    /// The next byte that the request brings.
    public var position: Int
    /// The number of bytes that the request brings each second.
    public var rate: Double
  }

  /// The current state.
  public var state: State { run.state }

  /// The states of the download. A reader gets the newest one, at most ten a second: nothing is kept for a slow reader. The
  /// last state is ``State/Phase-swift.enum/complete`` or ``State/Phase-swift.enum/failed``.
  public var states: States { States(download: self) }

  /// The states of a download, as ``Download/states`` describes them. Iterators are independent of each other.
  public struct States: AsyncSequence, Sendable {
    public typealias Element = State
    public typealias Failure = Never

    let download: Download

    /// A reader of states. Cancelling its task ends the sequence.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let download: Download
      private var seen = -1
      private var last: ContinuousClock.Instant?

      init(_ download: Download) { self.download = download }

      /// Returns the newest state when there is one that this reader has not seen, or `nil` after the last one.
      public mutating func next() async -> State? { await next(isolation: nil) }

      /// Returns the newest state when there is one that this reader has not seen, or `nil` after the last one.
      public mutating func next(isolation actor: isolated (any Actor)?) async -> State? {
        guard seen < .max, !Task.isCancelled else { return nil }
        if let last { await download.feed.rest(until: last.advanced(by: .milliseconds(100))) }
        guard let (version, isOver) = await download.feed.change(after: seen) else { return nil }
        seen = isOver ? .max : version
        last = .now
        return download.state
      }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(download) }
  }

  // MARK: - The bytes

  /// The bytes of the file in order, while they arrive. They are read from the disk, so a slow reader does not slow the
  /// download down, and several readers may read.
  ///
  /// The bytes have not been verified when they are delivered. The sequence ends without an error only if the whole file
  /// is complete and verified; it throws when bytes that were delivered have turned out to be wrong or of another version.
  public var bytes: Bytes { Bytes(download: self) }

  /// The bytes of a file in order, as ``Download/bytes`` describes them. Each iterator begins at the first byte.
  public struct Bytes: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = DownloadError

    let download: Download

    /// A reader of a file's bytes.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private let reader: DownloadReader

      init(_ download: Download) { reader = DownloadReader(download, download.run, download.feed) }

      /// Returns the next bytes, which are not empty, or `nil` at the end of a complete file.
      public mutating func next() async throws(DownloadError) -> [UInt8]? { try await reader.next() }

      /// Returns the next bytes, which are not empty, or `nil` at the end of a complete file.
      public mutating func next(isolation actor: isolated (any Actor)?) async throws(DownloadError) -> [UInt8]? {
        try await reader.next()
      }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(download) }
  }
}
