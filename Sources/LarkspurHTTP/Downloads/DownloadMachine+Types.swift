import LarkspurBytes

extension DownloadMachine {
  /// Which range to ask which mirror for.
  public struct Request: Hashable, Sendable {
    /// The index of the mirror.
    public var source: Int
    /// The fields `Range` and `If-Range`. Empty for a request of the whole.
    public var fields: FieldList
  }

  public enum Action: Hashable, Sendable {
    /// Send a request. Its events are reported with the lane's number, which is never used again.
    case request(lane: Int, Request)
    /// Stop a request. Nothing is reported for the lane any more. A write of the lane that is under way ends before the
    /// next disk action begins.
    case cancel(lane: Int)
    /// Let the lane read on (after `Space.wait`).
    case `continue`(lane: Int)
    /// Remove the record from the disk, then empty the part. Then report `discarded`.
    case discard
    /// Reserve room for a part of so many bytes. Then report `reserved`.
    case reserve(Int)
    /// Sync the part, then write the record, then report `checkpointed`. Lanes write meanwhile.
    case checkpoint(DownloadRecord)
    /// Compare the part with the checksum or the pieces' hashes, if there are any. Then report `verified`.
    case verify(total: Int)
    /// Cut the part to its size, give the part its name and remove the record, each on the disk before the next. Then
    /// report `installed`.
    case install(total: Int)
    /// The end. All lanes have been cancelled. After a failure the part and the record stay, unless no later download can
    /// use them.
    case end(DownloadFailure?)
  }

  /// A response's head, as the machine needs it.
  public struct Head: Sendable {
    public var status: Int
    public var fields: FieldList
    /// Seconds since 1970.
    public var wallSeconds: Double

    public init(status: Int, fields: FieldList, wallSeconds: Double) {
      self.status = status
      self.fields = fields
      self.wallSeconds = wallSeconds
    }

    /// Returns the values of a field.
    func values(_ name: String) -> [String] { fields.values(named: name) }

    /// Seconds that the response asks to wait for, or `nil`.
    var retryAfter: Double? {
      fields.firstValue(named: "Retry-After").flatMap { RetryAfter.seconds($0, now: wallSeconds) }
    }

    /// Whether the response is of the version that a validator names.
    func names(_ validator: String) -> Bool {
      values("ETag") == [validator] || values("Last-Modified") == [validator]
    }

    /// The point that this response could be continued from. A 206 is judged as the 200 that it is a part of.
    var point: ResumePoint? { ResumePoint(status: status == 206 ? 200 : status, now: wallSeconds, fields: values) }
  }

  /// Where a piece of a lane's body goes.
  public enum Space: Hashable, Sendable {
    /// Drop `skip` bytes, then write `count` bytes at `offset`, and report `wrote`, unless `count` is 0. If the piece has
    /// more bytes, ask again.
    case write(skip: Int, at: Int, count: Int)
    /// Keep the piece, and read no more, until `Action.continue` names the lane. Then ask again.
    case wait
    /// The lane needs no more bytes. An action has cancelled it.
    case none
  }

  /// How a lane's response ended.
  public enum LaneEnd: Hashable, Sendable {
    /// The response is complete, as its framing says.
    case complete
    /// There was no response, or it is incomplete. `isOfConnection`: another attempt may help.
    case failed(isOfConnection: Bool)
    /// The response is complete, and does not have the digest that its fields state (RFC 9530 2).
    case badDigest
  }

  /// Why a file operation failed.
  public enum DiskError: Error, Hashable, Sendable {
    /// The disk has no room, or the quota is used up.
    case full
    /// The value of `errno`.
    case failed(Int32)

    var failure: DownloadFailure {
      switch self {
      case .full: .diskFull
      case .failed(let code): .disk(code)
      }
    }
  }

  /// The comparison of the part with the plan's hashes.
  public enum Verification: Hashable, Sendable {
    /// All hashes fit, or there are none.
    case fits
    /// The ranges that do not have their hashes. Empty if only the whole has a hash.
    case wrong([Range<Int>])
    case failed(DiskError)
  }

  public enum Phase: Hashable, Sendable {
    case idle
    /// Fetches, verifies and installs.
    case loading
    /// Removes what the part has, to begin anew.
    case discarding
    /// Keeps the written bytes. The end follows.
    case ending(DownloadFailure)
    case ended
  }

  /// A request that is under way.
  public struct Lane: Hashable, Sendable {
    public let number: Int
    /// The index of the mirror.
    public let source: Int
    /// The first byte of the body.
    public internal(set) var first: Int
    /// The next byte of the body.
    public internal(set) var position: Int
    /// Where the lane stops, or `Int.max` if the size of the whole is unknown.
    public internal(set) var end: Int
    /// Where the body ends, or `Int.max` if its head does not say. Before the head arrives: the end of the range that
    /// was asked for.
    var bodyEnd: Int
    /// The bytes that `space` gave room to, and that are not yet reported as written.
    var granted = 0..<0
    var hasHead = false
    var isWaiting = false
    /// Whether the body has all bytes, and its head does not state their number.
    var isOpen = false
    /// Whether another lane fetches the rest of this one, too.
    var hasTwin = false
    var meter: Meter
    /// The failures of the mirror when the request was sent. A failure counts once for all requests that were under way.
    let failures: Int

    /// Number of bytes to receive.
    var left: Int { max(end - position, 0) }
    /// The range that the lane fetches, or has room for.
    var range: Range<Int> {
      let lower = granted.isEmpty ? position : granted.lowerBound
      return lower..<max(end, position)
    }
    /// Whether the body has no more bytes.
    var isAtBodyEnd: Bool { hasHead && position >= bodyEnd }
    /// Bytes per second lately, or `nil` if it has not been measured.
    public var rate: Double? { meter.rate }
  }

  // MARK: - State

  /// A mirror.
  struct Source: Sendable {
    let url: String
    /// The version's name at this mirror, or `nil` if the mirror has not answered.
    var validator: String?
    var standing = Standing.unknown
    /// Failures in a row without a byte.
    var failures = 0
    /// Lanes whose bytes were wrong.
    var rejections = 0
    /// The time of the next request.
    var readyAt = -Double.infinity
    /// The number of requests that the mirror serves at once, if a further one has failed.
    var lanesMax: Int?
    /// How often in a row a request failed while the mirror served others.
    var refusals = 0
    /// The time at which one request more than `lanesMax` is tried.
    var moreAt = -Double.infinity

    /// Why the mirror is not used any more, or `nil`.
    var failure: DownloadFailure? { if case .out(let failure) = standing { failure } else { nil } }
  }

  /// What is known of a mirror.
  enum Standing: Hashable {
    case unknown
    /// The mirror has answered with the whole, and did not say whether it accepts ranges.
    case answered
    case acceptsRanges
    /// The whole is the answer to each request.
    case ignoresRanges
    case out(DownloadFailure)
  }

  /// What is the same in all responses of a version.
  struct Version: Hashable {
    var total: Int?
    var coding: String?
    /// Whether a response has stated the size, which otherwise is the plan's.
    var isStated = false
  }

  /// The disk action that is under way.
  enum Work: Hashable {
    case discard
    case reserve
    /// The bytes that the new record names.
    case checkpoint(ByteRanges)
    case verify
    case install
  }

  /// The rate of a lane, measured over windows of time.
  struct Meter: Hashable {
    /// Shorter times say nothing, in seconds.
    static let leastSeconds = 1.0

    /// The beginning of the window.
    var since: Double
    var now: Double
    var bytes = 0
    /// The rate of the latest complete window, or of this one once it is long enough.
    var rate: Double?

    init(now: Double) { (since, self.now) = (now, now) }

    var seconds: Double { now - since }

    mutating func add(_ count: Int) { bytes += count }

    mutating func pass(_ now: Double) {
      self.now = now
      if seconds >= Self.leastSeconds { rate = Double(bytes) / seconds }
    }

    /// Begins a window. The latest rate stays.
    mutating func restart() { (since, bytes) = (now, 0) }
  }
}
