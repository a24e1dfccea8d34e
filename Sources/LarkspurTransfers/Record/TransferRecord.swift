import LarkspurBytes
import LarkspurHTTP

/// All that outlives a process of one task of a background session.
///
/// The owner of the journal writes the record when the task is created and at each later change that must not be
/// lost. A task is carried out again from its record, so the record never claims more than is on the disk: the first
/// `resumePoint.offset` bytes of the task's file are synced before the record that counts them is written.
public struct TransferRecord: Codable, Hashable, Sendable {
  public enum Kind: UInt8, Codable, Hashable, Sendable {
    case download = 0
    /// An upload from a file.
    case upload = 1
  }

  public enum State: UInt8, Codable, Hashable, Sendable {
    /// The task was resumed, and the runner should carry it out.
    case running = 0
    case suspended = 1
    /// The program has cancelled the task, and the end has not been recorded yet.
    case canceling = 2
    /// The task has ended. Its events may not have been delivered yet.
    case completed = 3
  }

  /// A file of the program that is uploaded. A later upload of another file or other content is an error.
  public struct UploadFile: Codable, Hashable, Sendable {
    /// The absolute path.
    public var path: String
    /// The file as it was when the task was created.
    public var identity: FileStatus

    public init(path: String, identity: FileStatus) {
      self.path = path
      self.identity = identity
    }
  }

  /// The counts of a task, in bytes. -1 stands for an unknown number, as in `URLSessionTask`.
  public struct Counts: Codable, Hashable, Sendable {
    public var sent: Int64 = 0
    public var received: Int64 = 0
    public var expectedToSend: Int64 = -1
    public var expectedToReceive: Int64 = -1
    public var clientExpectsToSend: Int64 = -1
    public var clientExpectsToReceive: Int64 = -1

    public init() {}
  }

  /// An error, as its domain, code and text.
  public struct Failure: Codable, Hashable, Sendable {
    public var domain: String
    public var code: Int64
    public var message: String

    public init(domain: String, code: Int64, message: String) {
      self.domain = domain
      self.code = code
      self.message = message
    }
  }

  /// An event that no process of the program has taken yet. Events are delivered in the order of the record.
  public enum Event: Codable, Hashable, Sendable {
    /// The download was resumed at an offset. `expected` is the size of the whole in bytes, or -1.
    case resumed(offset: Int64, expected: Int64)
    /// The task's file is the complete download, or the content of the response to an upload.
    case downloaded
    /// The task has ended: with `failure`, or without an error.
    case completed
  }

  /// The task identifier, from 1 to `taskMax`.
  public var task: Int
  /// The identifier of the session.
  public var session: String
  public var kind: Kind
  public var state = State.suspended
  public var taskDescription: String?
  public var originalRequest: TransferRequest
  /// The request after redirects, or `nil` if there were none.
  public var currentRequest: TransferRequest?
  /// The URLs of the redirects so far, in their order.
  public var redirects: [String] = []
  /// The cookies that the runner does not find in a file, in the form of `CookieFile`, or `nil` if there are none.
  public var cookies: [UInt8]?
  /// The file to upload, or `nil` for a download.
  public var uploadFile: UploadFile?
  /// Whether the journal's directory has a file with received bytes: `TransferFileName.content(of:)`.
  public var hasContentFile = false
  /// The point from which the download continues, with the validator of the version that the bytes belong to. `nil` if
  /// the download has to start over.
  public var resumePoint: ResumePoint?
  /// The data with which an upload continues at a server that supports it, as `UploadResumeData` encodes it. `nil` if the
  /// upload has to start over.
  public var uploadPoint: [UInt8]?
  public var counts = Counts()
  public var response: TransferResponse?
  public var failure: Failure?
  /// The cause of `failure` in a lower layer.
  public var underlyingFailure: Failure?
  /// The time at which the task was created, in seconds since 1970. The limit for the whole task counts from here, without
  /// the time for which the task was suspended.
  public var createdSeconds: Double
  /// The time at which the task was suspended, in seconds since 1970. `nil` if the task is not suspended.
  public var suspendedSeconds: Double?
  /// The time for which the task was suspended before that, in seconds.
  public var pausedSeconds = 0.0
  /// The time before which the task does not start, in seconds since 1970.
  public var earliestBeginSeconds: Double?
  /// The time of the next attempt, in seconds since 1970, while the task waits after a failed attempt.
  public var nextAttemptSeconds: Double?
  /// The clock of the times but `earliestBeginSeconds`, or `nil` if only the wall clock is known.
  public var clock: Clock?
  /// The number of failed attempts in a row.
  public var failedAttempts: UInt32 = 0
  public var isDiscretionary = false
  /// The task's priority, from 0 to 1.
  public var priority = 0.5
  public var events: [Event] = []
  /// Whether the task has ended, and its program has not taken all events.
  public var hasUnreportedEnd: Bool { state == .completed && !events.isEmpty }

  public init(
    task: Int, session: String, kind: Kind, request: TransferRequest, uploadFile: UploadFile? = nil,
    createdSeconds: Double
  ) {
    self.task = task
    self.session = session
    self.kind = kind
    originalRequest = request
    self.uploadFile = uploadFile
    self.createdSeconds = createdSeconds
  }
}

/// The request of a task, as a record holds it.
///
/// The fields are those that the program has set, `Authorization` and `Cookie` among them: without them the task could
/// not be carried out again. Cookies, credentials and fields that the session adds are not kept.
public struct TransferRequest: Codable, Hashable, Sendable {
  public var url: String
  public var method: String
  public var fields: FieldList = []
  /// The body of a download task's request.
  public var body: [UInt8]?
  public var mainDocument: String?
  public var cookiePartition: String?
  /// The timeout in seconds, or `nil` if the program has not set it.
  public var timeoutSeconds: Double?
  /// The raw value of the cache policy.
  public var cachePolicy: UInt32 = 0
  /// The raw value of the network service type.
  public var networkServiceType: UInt32 = 0
  /// The raw value of the request's other settings. A reader ignores bits that it does not know.
  public var flags: UInt32 = 0

  public init(url: String, method: String = "GET") {
    self.url = url
    self.method = method
  }
}

/// The head of a task's response.
public struct TransferResponse: Codable, Hashable, Sendable {
  public var url: String
  /// The status code, from 0 to 999.
  public var status: UInt32
  /// The version of HTTP, for example `HTTP/1.1`.
  public var version: String
  public var fields: FieldList
  /// Whether the content coding of the content has been undone.
  public var isDecoded: Bool

  public init(url: String, status: UInt32, version: String, fields: FieldList, isDecoded: Bool) {
    self.url = url
    self.status = status
    self.version = version
    self.fields = fields
    self.isDecoded = isDecoded
  }
}
