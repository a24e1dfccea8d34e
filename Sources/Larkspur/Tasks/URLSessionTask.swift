import Foundation
import Synchronization

/// One load of one URL, with the redirections and challenges on its way. Made by a session, and suspended until
/// ``resume()``.
///
/// For any thread.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
  /// What a task is doing.
  public enum State: Int, Sendable {
    /// It loads, or waits for the network.
    case running = 0
    /// It has not begun, or stands still.
    case suspended = 1
    /// It has been cancelled, and is about to end.
    case canceling = 2
    /// It is over, well or not.
    case completed = 3
  }

  /// The priorities that have a name. They are between 0 and 1; who has the higher one gets a connection first.
  public static let defaultPriority: Float = 0.5
  /// See ``defaultPriority``.
  public static let lowPriority: Float = 0.25
  /// See ``defaultPriority``.
  public static let highPriority: Float = 0.75

  /// What a task shows of its load: the values that stay as they are from `cancel()` on.
  struct Shown {
    var currentRequest: URLRequest?
    /// Redirections have left the origin that the program had meant.
    var isElsewhere = false
    var response: URLResponse?
    var bytesReceived: Int64 = 0
    var bytesSent: Int64 = 0
    var bytesExpectedToReceive: Int64 = 0
    var bytesExpectedToSend: Int64 = 0
  }

  struct Details {
    var state = State.suspended
    /// As often as it has to be resumed before it runs.
    var suspensions = 1
    /// Whether it has ever run, or come to its end without that.
    var hasBegun = false
    /// A delegate hears that it is about to run.
    var isResuming = false
    var originalRequest: URLRequest?
    private(set) var shown: Shown
    fileprivate(set) var error: (any Error)?
    var description: String?
    var priority = URLSessionTask.defaultPriority
    var delegate: (any URLSessionTaskDelegate)?
    var earliestBeginDate: Date?
    var clientExpectsToSend = NSURLSessionTransferSizeUnknown
    var clientExpectsToReceive = NSURLSessionTransferSizeUnknown
    var progress: Progress?
    /// Nil: the program has not said so.
    var prefersIncrementalDelivery: Bool?
    /// Kept while the task is not over.
    var session: URLSession?
    var transfer: Transfer?
    /// Of a download task.
    var resumeDataHandlers: [ResumeDataHandler] = []

    /// - Parameter expected: Bytes of the body; -1 if that is not known.
    init(_ request: URLRequest? = nil, bytesExpectedToSend expected: Int64 = 0) {
      originalRequest = request
      shown = Shown(currentRequest: request, bytesExpectedToSend: expected)
    }

    /// Changes what the task shows, unless the task has been cancelled or is complete: the load may be a step behind.
    mutating func show<T>(_ change: (inout Shown) -> T) -> T {
      if state == .running || state == .suspended { return change(&shown) }
      var unseen = shown
      return change(&unseen)
    }

    /// Takes over what another task shows, in whose place this one goes on.
    mutating func adopt(_ other: Shown) { shown = other }

    /// Ends the task.
    ///
    /// - Parameter isGiven: The owner has the result already, so that `cancel()` comes too late.
    /// - Returns: Why it failed. A load that has come to its end after `cancel()` has failed all the same.
    mutating func complete(_ failure: (any Error)?, isGiven: Bool) -> (any Error)? {
      guard state != .completed else { return error }
      if failure == nil, state == .canceling, !isGiven {
        error = URLError.make(.cancelled, "cancelled").failing(at: shown.currentRequest?.url)
      } else {
        error = failure
      }
      state = .completed
      return error
    }

    mutating func start() -> Start {
      defer { hasBegun = true }
      isResuming = false
      state = .running
      return Start(isFirst: !hasBegun, transfer: transfer)
    }
  }

  /// A task has been set running, and somebody has to be told.
  struct Start {
    var isFirst: Bool
    var transfer: Transfer?
  }

  let details: Mutex<Details>
  /// Nil: no session has made it.
  let core: SessionCore?
  private let identifier: Int
  /// Where it stands on its session's list, whose lock guards it.
  var place: Int?
  /// What the task sends, and what becomes of what it receives.
  let source: BodySource
  let output: TaskOutput
  let creationDate = Date()
  /// Whether the delegate that is called has the method.
  let delegateWord = DelegateWord()

  /// A task of nobody's, which loads nothing: for subclasses in tests.
  public override init() {
    core = nil
    identifier = 0
    source = .request
    output = .delegate
    details = Mutex(Details())
    super.init()
  }

  init(_ core: SessionCore, request: URLRequest?, source: BodySource = .request, output: TaskOutput) {
    self.core = core
    identifier = core.nextIdentifier()
    self.source = source
    self.output = output
    details = Mutex(Details(request, bytesExpectedToSend: source.byteCount(of: request)))
    super.init()
  }

  /// The task of an awaited load that has had none.
  init(of transfer: Transfer) {
    core = transfer.core
    identifier = transfer.identifier
    source = .request
    output = .dataResult
    var details = Details(transfer.request, bytesExpectedToSend: source.byteCount(of: transfer.request))
    details.session = transfer.session
    details.transfer = transfer
    _ = details.start()
    details.suspensions = 0
    self.details = Mutex(details)
    super.init()
  }

  open override func copy() -> Any { copy(with: nil) }

  /// A task is its own copy: it cannot be done twice.
  open func copy(with zone: NSZone?) -> Any { self }

  /// What this kind of task does before it loads, on the loop.
  func prepare(_ transfer: Transfer) throws(URLError) {}

  /// Whether the program knows of it.
  var isKnown: Bool { true }

  /// Whether its owner gets the content before it is complete, unless he says otherwise.
  var isIncremental: Bool { output.isIncremental }

  func read<T>(_ body: (inout Details) -> T) -> T { details.withLock { body(&$0) } }

  /// Changes what the task shows, as `Details.show` does.
  @discardableResult
  func show<T>(_ change: (inout Shown) -> T) -> T { read { $0.show(change) } }

  // MARK: - What it is

  /// Its number in its session.
  open var taskIdentifier: Int { identifier }

  /// What it was made with. Nil for a stream task.
  open var originalRequest: URLRequest? { read { $0.originalRequest } }

  /// What it loads at present: after redirections, another request. It has the fields of the configuration's
  /// `httpAdditionalHeaders`, as on Darwin.
  open internal(set) var currentRequest: URLRequest? {
    get {
      let (current, isElsewhere) = read { ($0.shown.currentRequest, $0.shown.isElsewhere) }
      guard var current, let core else { return current }
      core.composer.complete(&current, isElsewhere: isElsewhere)
      return current
    }
    set { show { $0.currentRequest = newValue } }
  }

  /// What the server has said, or `nil` until it has. A response that comes after ``cancel()`` is not shown any more.
  open internal(set) var response: URLResponse? {
    get { read { $0.shown.response } }
    set { show { $0.response = newValue } }
  }

  /// Why it failed. Nil while it runs, and when it has succeeded.
  open internal(set) var error: (any Error)? {
    get { read { $0.error } }
    set { read { $0.error = newValue } }
  }

  /// For people to read.
  open var taskDescription: String? {
    get { read { $0.description } }
    set { read { $0.description = newValue } }
  }

  /// What it is doing at present.
  open internal(set) var state: State {
    get { read { $0.state } }
    set { read { $0.state = newValue } }
  }

  /// From 0 to 1: who gets a connection first. It counts until the task has one.
  open var priority: Float {
    get { read { $0.priority } }
    set { read { $0.priority = newValue.isNaN ? URLSessionTask.defaultPriority : min(max(newValue, 0), 1) } }
  }

  /// Asked before the session's delegate, and let go when the task is over. It may be set at any time; a call that is on its
  /// way goes to the one before. Metrics are collected for one that is there when the task is resumed.
  open var delegate: (any URLSessionTaskDelegate)? {
    get { read { $0.delegate } }
    set {
      // The old one may go with this, and do on its way what it likes: not while the lock is held.
      _ = read { details in
        defer { details.delegate = newValue }
        return details.delegate
      }
    }
  }

  /// For background sessions: not before this time. Tasks of other sessions begin when they are resumed.
  open var earliestBeginDate: Date? {
    get { read { $0.earliestBeginDate } }
    set { read { $0.earliestBeginDate = newValue } }
  }

  /// Whether a delegate is given the content as it comes. If not, all of it is kept in memory, and comes in one call before
  /// the last ones. A completion handler is given all of it in any case. By default true, but for download tasks and tasks with a
  /// completion handler.
  open var prefersIncrementalDelivery: Bool {
    get { read { $0.prefersIncrementalDelivery } ?? isIncremental }
    set { read { $0.prefersIncrementalDelivery = newValue } }
  }

  // MARK: - Numbers

  /// Bytes of the body that have come, its content coding undone.
  open internal(set) var countOfBytesReceived: Int64 {
    get { read { $0.shown.bytesReceived } }
    set { show { $0.bytesReceived = newValue } }
  }

  /// Bytes of the request's body that have left.
  open internal(set) var countOfBytesSent: Int64 {
    get { read { $0.shown.bytesSent } }
    set { show { $0.bytesSent = newValue } }
  }

  /// What `Content-Length` says, or `NSURLSessionTransferSizeUnknown`.
  open internal(set) var countOfBytesExpectedToReceive: Int64 {
    get { read { $0.shown.bytesExpectedToReceive } }
    set { show { $0.bytesExpectedToReceive = newValue } }
  }

  /// The length of the request's body, or `NSURLSessionTransferSizeUnknown`.
  open internal(set) var countOfBytesExpectedToSend: Int64 {
    get { read { $0.shown.bytesExpectedToSend } }
    set { show { $0.bytesExpectedToSend = newValue } }
  }

  /// What the program expects; no meaning to the session.
  open var countOfBytesClientExpectsToSend: Int64 {
    get { read { $0.clientExpectsToSend } }
    set { read { $0.clientExpectsToSend = newValue } }
  }

  /// What the program expects; no meaning to the session.
  open var countOfBytesClientExpectsToReceive: Int64 {
    get { read { $0.clientExpectsToReceive } }
    set { read { $0.clientExpectsToReceive = newValue } }
  }

  /// How far the task is, over sending and receiving. Cancelling, pausing and resuming it acts on the task.
  open var progress: Progress {
    if let progress = read({ $0.progress }) { return progress }
    let progress = Progress(parent: nil, userInfo: nil)
    progress.totalUnitCount = -1
    progress.isPausable = true
    progress.isCancellable = true
    isSteered(by: progress)
    let kept = read { details in
      if details.progress == nil { details.progress = progress }
      return details.progress ?? progress
    }
    updateProgress()
    return kept
  }

  /// Whoever cancels, pauses or resumes the progress object means this task.
  func isSteered(by progress: Progress) {
    progress.cancellationHandler = { [weak self] in self?.cancel() }
    progress.pausingHandler = { [weak self] in self?.suspend() }
    progress.resumingHandler = { [weak self] in self?.resume() }
  }

  /// Tells the progress object, if anybody has asked for it.
  func updateProgress() {
    guard let progress = read({ $0.progress }) else { return }
    ProgressCounts.set(progress) {
      let (sent, received, toSend, toReceive, isDone) = read {
        (
          $0.shown.bytesSent, $0.shown.bytesReceived, $0.shown.bytesExpectedToSend, $0.shown.bytesExpectedToReceive,
          $0.state == .completed && $0.error == nil
        )
      }
      // A progress of nothing at all is never finished: a task without a body is one unit of work.
      let done = isDone ? max(sent + received, 1) : sent + received
      // A server may say of its content what it likes.
      let (total, isTooMuch) = toSend.addingReportingOverflow(toReceive)
      let isKnown = !isDone && toSend >= 0 && toReceive >= 0 && !isTooMuch && total > 0
      return (done, isKnown ? total : isDone ? done : -1)
    }
  }

  // MARK: - Control

  /// Ends the task with `URLError.cancelled`, unless it is over. From here on ``response``, ``currentRequest`` and the counts
  /// stay as they are, whatever still comes. A call that the delegate is in goes to its end; questions
  /// and content that still wait for their turn on the delegate queue are dropped.
  ///
  /// Of a task that has never been resumed the end is told when it is, and 10 ms later at the latest: whoever cancels it may be
  /// just about to say who is to hear of it.
  open func cancel() {
    guard let core else { return }
    // The transfer of the moment: another task may go on in place of this one, and then the end is that one's.
    let (endsUnbegun, transfer) = read { details -> (Bool, Transfer?) in
      guard details.state == .running || details.state == .suspended else { return (false, details.transfer) }
      details.state = .canceling
      return (!details.hasBegun, details.transfer)
    }
    if endsUnbegun { core.endSoon(self) }
    transfer?.interrupt()
  }

  /// Ends a task that has been cancelled before it has begun, unless that has been done.
  func endUnbegun() {
    let isDue = read { details in
      guard details.state == .canceling, !details.hasBegun else { return false }
      details.hasBegun = true
      return true
    }
    if isDue { core?.begin(self, inline: false) }
  }

  /// Stops sending, reading and calling the delegate, until the task has been resumed as often as it has been suspended. Nothing is
  /// lost: what the server sends meanwhile waits in the kernel and at the server. Time does not count.
  open func suspend() {
    let (hasRun, transfer) = read { details -> (Bool, Transfer?) in
      guard details.state == .running || details.state == .suspended else { return (false, nil) }
      defer {
        details.state = .suspended
        details.isResuming = false
      }
      details.suspensions += 1
      return (details.state == .running || details.isResuming, details.transfer)
    }
    transfer?.suspensionChanged(of: self)
    guard hasRun, let core, let delegate = core.selectiveDelegate, let session = read({ $0.session }) else { return }
    delegate.urlSession(session, didSuspend: self)
  }

  /// Begins the task, or lets it go on.
  open func resume() {
    guard let core else { return }
    let delegate = isKnown ? core.selectiveDelegate : nil
    let (session, start) = read { details -> (URLSession?, Start?) in
      guard details.state == .suspended, !details.isResuming else { return (nil, nil) }
      if details.suspensions > 0 { details.suspensions -= 1 }
      guard details.suspensions == 0 else { return (nil, nil) }
      if delegate == nil { return (nil, details.start()) }
      details.isResuming = true
      return (details.session, nil)
    }
    if let start { return self.start(start, core) }
    if let delegate, let session {
      // Before it runs: it may be over at once. And who hears of it may suspend it, or cancel it.
      delegate.urlSession(session, didResume: self)
      if let start = read({ $0.isResuming && $0.state == .suspended ? $0.start() : nil }) {
        return self.start(start, core)
      }
    }
    endUnbegun()
  }

  private func start(_ start: Start, _ core: SessionCore) {
    start.transfer?.suspensionChanged(of: self)
    if start.isFirst { core.begin(self) }
  }

  /// Ends the task: its properties say what came of it before its owner is told.
  ///
  /// - Parameters:
  ///   - isGiven: The owner has the result already, so that ``cancel()`` comes too late.
  ///   - last: Shown in the same step, unless the task has been cancelled.
  /// - Returns: Why it failed. A load that has come to its end after ``cancel()`` has failed all the same.
  @discardableResult
  func complete(
    _ failure: (any Error)?, isGiven: Bool = false, showing last: (inout Shown) -> Void = { _ in }
  ) -> (any Error)? {
    let (failure, isWatched) = read { details in
      details.show(last)
      return (details.complete(failure, isGiven: isGiven), details.progress != nil)
    }
    if isWatched { updateProgress() }
    return failure
  }

  /// Lets go of everybody that a task keeps until it is over. Returns its session.
  @discardableResult
  func letGo() -> URLSession? {
    let last = read { details in
      defer {
        details.transfer = nil
        details.session = nil
        details.delegate = nil
      }
      return (transfer: details.transfer, session: details.session, delegate: details.delegate)
    }
    // What goes with these may call the task on its way: not while its lock is held.
    return withExtendedLifetime(last) { last.session }
  }

  /// From 0 to 255.
  var poolPriority: UInt8 { Self.poolPriority(read { $0.priority }) }

  static var poolPriorityDefault: UInt8 { poolPriority(0.5) }

  private static func poolPriority(_ priority: Float) -> UInt8 { UInt8(clamping: Int(priority * 255)) }

  var isSuspended: Bool { read { $0.state == .suspended } }

  /// It has been resumed, and is neither cancelled nor complete.
  var isUnderWay: Bool { read { $0.hasBegun && ($0.state == .running || $0.state == .suspended) } }
}

/// Loads a URL into memory, or piece by piece to a delegate.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
