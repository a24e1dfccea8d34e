import LarkspurBytes

/// Decides how a file is downloaded in pieces, over several connections and from several mirrors.
///
/// The machine knows sizes, bytes, errors and the time, and neither files nor sockets. Its owner reports facts, each by one
/// function, and executes the actions that the function returns, in their order. Times are seconds of a clock that never
/// goes back; after `nextTime` the owner calls `passTime`.
///
/// ```
///            start ──► probing ──► loading ──► verifying ──► installing ──► ended
///                         ▲            │  ▲         │ wrong hash
///                         └── other ◄──┘  └─────────┘
///                             version
/// ```
///
/// Invariants:
/// - Bytes of two versions are never in the part together. Before the first byte of another version, `discard` is executed.
/// - A byte counts as kept only after `checkpointed`.
/// - A lane has at most `pieceBytes` bytes that are written and not kept.
/// - The machine ends: every failure in a row is counted, and a byte that arrives is one fewer to fetch.
public struct DownloadMachine: Sendable {
  /// Which range to ask which mirror for.
  public struct Request: Hashable, Sendable {
    /// The index of the mirror.
    public var source: Int
    /// The fields `Range` and `If-Range`; none for a request of the whole.
    public var fields: FieldList
  }

  public enum Action: Hashable, Sendable {
    /// Send a request. Its events are reported with the lane's number, which is never used again.
    case request(lane: Int, Request)
    /// Stop a request. Nothing is reported for the lane any more.
    case cancel(lane: Int)
    /// Let the lane read on (after `Space.wait`).
    case `continue`(lane: Int)
    /// Remove the record from the disk, then empty the part. Then report `discarded`.
    case discard
    /// Reserve room for the part. Then report `reserved`.
    case reserve(Int)
    /// Sync the part, then write the record, then report `checkpointed`. At most one is under way.
    case checkpoint(DownloadRecord)
    /// Compare the part with the checksum or the pieces' hashes. Then report `verified`.
    case verify(total: Int)
    /// Cut the part to its size, give the part its name and remove the record, each on the disk before the next. Then
    /// report `installed`.
    case install(total: Int)
    /// The end. After a failure the part and the record stay, unless no later download can use them.
    case end(DownloadFailure?)
  }

  /// A response's head, as the machine needs it.
  public struct Head: Sendable {
    public var status: Int
    public var fields: ResumePoint.Fields
    /// Seconds since 1970.
    public var wallSeconds: Double
    /// Seconds that `Retry-After` asks for, or `nil`.
    public var retryAfter: Double?
  }

  /// Where a piece of a lane's body goes.
  public enum Space: Hashable, Sendable {
    /// Drop `skip` bytes, then write up to `count` at `offset`, and report `wrote`. If the piece has more bytes, ask again.
    case write(skip: Int, at: Int, count: Int)
    /// Keep the piece, and read no more, until `Action.continue` names the lane. Then ask again.
    case wait
    /// The lane needs no more bytes. It has been cancelled by an action.
    case none
  }
}
