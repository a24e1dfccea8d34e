import Foundation
import LarkspurEngine
import Synchronization

/// A load of one URL, with the redirections and challenges on its way. A session creates the task, suspended;
/// ``resume()`` starts it.
///
/// Thread-safe.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
  /// The state of a task.
  public enum State: Int, Sendable {
    /// The task loads, or waits for the network.
    case running = 0
    /// The task has not been started, or is suspended.
    case suspended = 1
    /// The task has been cancelled, and is about to complete.
    case canceling = 2
    /// The task is complete, with success or with an error.
    case completed = 3
  }

  /// The default of ``priority``. Priorities are between 0 and 1; of the tasks that wait for a connection, the one with
  /// the highest priority gets it first.
  public static let defaultPriority: Float = 0.5
  /// See ``defaultPriority``.
  public static let lowPriority: Float = 0.25
  /// See ``defaultPriority``.
  public static let highPriority: Float = 0.75

  /// The values of the load that a task shows. They no longer change after `cancel()`.
  struct Shown {
    var currentRequest: URLRequest?
    /// Whether redirections have left the origin that the program named.
    var hasLeftOrigin = false
    var response: URLResponse?
    var bytesReceived: Int64 = 0
    var bytesSent: Int64 = 0
    var bytesExpectedToReceive: Int64 = 0
    var bytesExpectedToSend: Int64 = 0
  }

  struct Details {
    var state = State.suspended
    /// Number of calls of `resume()` that the task needs before it runs.
    var suspensions = 1
    /// Whether the task has ever run, or has ended without running.
    var hasStarted = false
    /// Whether the selective delegate is being notified that the task is about to run.
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
    /// `nil` if the program has not set it.
    var prefersIncrementalDelivery: Bool?
    /// Kept until the task is complete.
    var session: URLSession?
    var load: Load?
    /// Whether the delegate that is being called leaves the file of a download of a background session.
    var isFileLeft = false
    /// For download and upload tasks only.
    var resumeDataHandlers: [ResumeDataHandler] = []

    /// - Parameter expected: The length of the body in bytes, or -1 if it is not known.
    init(_ request: URLRequest? = nil, bytesExpectedToSend expected: Int64 = 0) {
      originalRequest = request
      shown = Shown(currentRequest: request, bytesExpectedToSend: expected)
    }

    /// Changes what the task shows, unless the task has been cancelled or is complete, which may not have reached the
    /// load yet.
    mutating func show<T>(_ change: (inout Shown) -> T) -> T {
      if state == .running || state == .suspended { return change(&shown) }
      var unseen = shown
      return change(&unseen)
    }

    /// Copies what another task shows, when this task takes that one's place.
    mutating func adopt(_ other: Shown) { shown = other }

    mutating func takeIsFileLeft() -> Bool {
      defer { isFileLeft = false }
      return isFileLeft
    }

    /// Completes the task.
    ///
    /// - Parameter isDelivered: Whether the owner has the result already, so that `cancel()` comes too late.
    /// - Returns: The task's error. A load that succeeds after `cancel()` has failed all the same, unless
    ///   `isDelivered`.
    mutating func complete(_ failure: (any Error)?, isDelivered: Bool) -> (any Error)? {
      guard state != .completed else { return error }
      if failure == nil, state == .canceling, !isDelivered {
        error = URLError.make(.cancelled, "cancelled").failing(at: shown.currentRequest?.url)
      } else {
        error = failure
      }
      state = .completed
      return error
    }

    mutating func start() -> Start {
      defer { hasStarted = true }
      isResuming = false
      state = .running
      return Start(isFirst: !hasStarted, load: load)
    }
  }

  /// The effect of setting a task running: whether it runs for the first time, and the load to notify.
  struct Start {
    var isFirst: Bool
    var load: Load?
  }

  let details: Mutex<Details>
  /// `nil` if no session has created the task.
  let core: SessionCore?
  private let identifier: Int
  /// The index of the task in its session's list. That list's lock guards it.
  var indexInSet: Int?
  /// The source of the body, and the destination of the content.
  let source: BodySource
  let output: TaskOutput
  let creationDate = Date()
  /// Detects whether the delegate that is being called implements the method.
  let methodProbe = DelegateMethodProbe()

  /// Creates a task that belongs to no session and loads nothing. For subclasses in tests.
  public override init() {
    core = nil
    identifier = 0
    source = .request
    output = .delegate
    details = Mutex(Details())
    super.init()
  }

  /// - Parameter identifier: The task's number, or `nil` for the session's next one.
  init(
    _ core: SessionCore, request: URLRequest?, source: BodySource = .request, output: TaskOutput,
    identifier: Int? = nil
  ) {
    self.core = core
    self.identifier = identifier ?? core.nextIdentifier()
    self.source = source
    self.output = output
    details = Mutex(Details(request, bytesExpectedToSend: source.byteCount(of: request)))
    super.init()
  }

  /// Creates the task of an awaited load that has had none.
  init(of load: Load) {
    core = load.core
    identifier = load.identifier
    source = .request
    output = .dataResult
    var details = Details(load.request, bytesExpectedToSend: source.byteCount(of: load.request))
    details.session = load.session
    details.load = load
    _ = details.start()
    details.suspensions = 0
    self.details = Mutex(details)
    super.init()
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns the task itself, because a load cannot be copied.
  open func copy(with zone: NSZone?) -> Any { self }

  /// Prepares a load for this kind of task. Called on the loop, before anything is loaded.
  func prepare(_ load: Load) throws(URLError) {}

  /// Called when the task has ended without a load.
  func ended(_ failure: (any Error)?) {}

  /// Whether the task is one of the program's. `false` for a load that the cache started.
  var isKnown: Bool { true }

  /// The task that delegates are asked about: the whole download's task if this task loads a part of it.
  var owner: URLSessionTask { self }

  /// The default of `prefersIncrementalDelivery`.
  var isIncremental: Bool { output.isIncremental }

  func read<T>(_ body: (inout Details) -> T) -> T { details.withLock { body(&$0) } }

  /// Changes what the task shows, as `Details.show` does.
  @discardableResult
  func show<T>(_ change: (inout Shown) -> T) -> T { read { $0.show(change) } }

  // MARK: - Properties

  /// The number of the task, unique in its session.
  open var taskIdentifier: Int { identifier }

  /// The request that the task was created with. `nil` for a stream task, a download or upload
  /// task whose resume data cannot be used, and a task that belongs to no session.
  open var originalRequest: URLRequest? { read { $0.originalRequest } }

  /// The request that the task loads at present. Changes after a redirection. Has the fields of the configuration's
  /// `httpAdditionalHeaders`, as on Darwin.
  open internal(set) var currentRequest: URLRequest? {
    get {
      let (current, hasLeftOrigin) = read { ($0.shown.currentRequest, $0.shown.hasLeftOrigin) }
      guard var current, let core else { return current }
      core.composer.complete(&current, hasLeftOrigin: hasLeftOrigin)
      return current
    }
    set { show { $0.currentRequest = newValue } }
  }

  /// The server's response, or `nil` until there is one. A response that comes after ``cancel()`` is not shown.
  open internal(set) var response: URLResponse? {
    get { read { $0.shown.response } }
    set { show { $0.response = newValue } }
  }

  /// The error of a failed task. `nil` while the task runs, and when it has succeeded.
  open internal(set) var error: (any Error)? {
    get { read { $0.error } }
    set { read { $0.error = newValue } }
  }

  /// A human-readable description. Has no meaning to the session.
  open var taskDescription: String? {
    get { read { $0.description } }
    set {
      read { $0.description = newValue }
      propertiesChanged()
    }
  }

  /// The current state.
  open internal(set) var state: State {
    get { read { $0.state } }
    set { read { $0.state = newValue } }
  }

  /// The priority, from 0 to 1: of the tasks that wait for a connection, the one with the highest priority gets it
  /// first. Other values are limited to this range. A change has no effect once the task has a connection.
  open var priority: Float {
    get { read { $0.priority } }
    set {
      read { $0.priority = newValue.isNaN ? URLSessionTask.defaultPriority : min(max(newValue, 0), 1) }
      propertiesChanged()
    }
  }

  /// The delegate of this task. For each method that it implements, called in place of the session's delegate. Released
  /// when the task is complete.
  ///
  /// The delegate may be set at any time; a call that has started stays with the previous delegate. Metrics are
  /// collected for a delegate that is set when the task is first resumed.
  open var delegate: (any URLSessionTaskDelegate)? {
    get { read { $0.delegate } }
    set {
      // The previous delegate may be released here, and its deinitialiser may run any code: not while the lock is held.
      _ = read { details in
        defer { details.delegate = newValue }
        return details.delegate
      }
    }
  }

  /// A task of a background session does not start before this time. Set it before the task is resumed. No effect in
  /// other sessions, whose tasks start when they are resumed.
  open var earliestBeginDate: Date? {
    get { read { $0.earliestBeginDate } }
    set { read { $0.earliestBeginDate = newValue } }
  }

  /// Whether the delegate gets the content in pieces, as it comes. If `false`, all of the content is kept in memory and
  /// delivered in one call, before the last calls. A completion handler gets all of the content in any case.
  ///
  /// The default is `true`, except for download tasks and for tasks whose content goes to a completion handler or an
  /// awaiting caller as a whole.
  open var prefersIncrementalDelivery: Bool {
    get { read { $0.prefersIncrementalDelivery } ?? isIncremental }
    set { read { $0.prefersIncrementalDelivery = newValue } }
  }

  // MARK: - Numbers

  /// Number of received bytes of the content, with its content coding decoded.
  open internal(set) var countOfBytesReceived: Int64 {
    get { read { $0.shown.bytesReceived } }
    set { show { $0.bytesReceived = newValue } }
  }

  /// Number of bytes of the request's body that have been sent.
  open internal(set) var countOfBytesSent: Int64 {
    get { read { $0.shown.bytesSent } }
    set { show { $0.bytesSent = newValue } }
  }

  /// The length of the content in bytes, as `Content-Length` gives it. `NSURLSessionTransferSizeUnknown` if the field
  /// is missing or the content is decoded; 0 until there is a response.
  open internal(set) var countOfBytesExpectedToReceive: Int64 {
    get { read { $0.shown.bytesExpectedToReceive } }
    set { show { $0.bytesExpectedToReceive = newValue } }
  }

  /// The length of the request's body in bytes, or `NSURLSessionTransferSizeUnknown`.
  open internal(set) var countOfBytesExpectedToSend: Int64 {
    get { read { $0.shown.bytesExpectedToSend } }
    set { show { $0.bytesExpectedToSend = newValue } }
  }

  /// Number of bytes that the program expects to send. Has no meaning to the session.
  open var countOfBytesClientExpectsToSend: Int64 {
    get { read { $0.clientExpectsToSend } }
    set {
      read { $0.clientExpectsToSend = newValue }
      propertiesChanged()
    }
  }

  /// Number of bytes that the program expects to receive. Has no meaning to the session.
  open var countOfBytesClientExpectsToReceive: Int64 {
    get { read { $0.clientExpectsToReceive } }
    set {
      read { $0.clientExpectsToReceive = newValue }
      propertiesChanged()
    }
  }

  /// The progress of sending and receiving. Cancelling, pausing or resuming this object cancels, suspends or resumes
  /// the task.
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

  /// Makes the progress object control this task.
  func isSteered(by progress: Progress) {
    progress.cancellationHandler = { [weak self] in self?.cancel() }
    progress.pausingHandler = { [weak self] in self?.suspend() }
    progress.resumingHandler = { [weak self] in self?.resume() }
  }

  /// Updates the progress object, if the program has asked for it.
  func updateProgress() {
    guard let progress = read({ $0.progress }) else { return }
    ProgressCounts.set(progress) {
      let (sent, received, toSend, toReceive, isDone) = read {
        (
          $0.shown.bytesSent, $0.shown.bytesReceived, $0.shown.bytesExpectedToSend, $0.shown.bytesExpectedToReceive,
          $0.state == .completed && $0.error == nil
        )
      }
      // Foundation never counts a progress of 0 units as finished: a task without a body and without content counts as
      // one unit.
      let (count, isTooManyBytes) = sent.addingReportingOverflow(received)
      let sum = isTooManyBytes ? Int64.max : count
      let done = isDone ? max(sum, 1) : sum
      // The server may announce any length, so that the sum overflows.
      let (total, isTooMuch) = toSend.addingReportingOverflow(toReceive)
      let isKnown = !isDone && toSend >= 0 && toReceive >= 0 && !isTooMuch && total > 0
      return (done, isKnown ? total : isDone ? done : -1)
    }
  }

  /// Reports the program's changes to the runner of a background session.
  private func propertiesChanged() {
    if let core, core.isBackground { core.background?.propertiesChanged(of: self) }
  }

  // MARK: - Control

  /// Ends the task with `URLError.cancelled`, unless it is complete. From here on ``response``, ``currentRequest`` and
  /// the counts no longer change. A delegate call that has started runs to its end. Questions and content that still
  /// wait on the delegate queue are dropped.
  ///
  /// The end of a task that has never been resumed is reported when it is resumed, or after 10 ms at the latest,
  /// so that the program can still set the delegate that receives the report.
  open func cancel() {
    guard let core else { return }
    // Read the load in the same step. When a download task takes this one's place, it takes the load as well,
    // and ends it.
    let (endsUnbegun, load) = read { details -> (Bool, Load?) in
      guard details.state == .running || details.state == .suspended else { return (false, details.load) }
      details.state = .canceling
      return (!details.hasStarted, details.load)
    }
    if endsUnbegun { core.endSoon(self) }
    load?.interrupt()
    if core.isBackground, !endsUnbegun { core.background?.cancel(self) }
  }

  /// Ends a task that was cancelled before its first `resume()`, unless that has been done.
  func endUnbegun() {
    let isDue = read { details in
      guard details.state == .canceling, !details.hasStarted else { return false }
      details.hasStarted = true
      return true
    }
    if isDue { core?.start(self, inline: false) }
  }

  /// Stops sending, reading and calling the delegate, until the task has been resumed as often as it has been
  /// suspended. Nothing is lost: data that the server sends meanwhile waits in the kernel and at the server. The task's
  /// timeouts do not run.
  open func suspend() {
    let (hasRun, load) = read { details -> (Bool, Load?) in
      guard details.state == .running || details.state == .suspended else { return (false, nil) }
      defer {
        details.state = .suspended
        details.isResuming = false
      }
      details.suspensions += 1
      return (details.state == .running || details.isResuming, details.load)
    }
    load?.suspensionChanged(of: self)
    if let core, core.isBackground, hasRun { core.background?.suspensionChanged(of: self) }
    guard hasRun, let core, let delegate = core.selectiveDelegate, let session = read({ $0.session }) else { return }
    delegate.urlSession(session, didSuspend: self)
  }

  /// Starts or continues the task, once it has been resumed as often as it has been suspended.
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
      // Notify before the task runs, because it may complete at once. The delegate may also suspend or cancel the task.
      delegate.urlSession(session, didResume: self)
      if let start = read({ $0.isResuming && $0.state == .suspended ? $0.start() : nil }) {
        return self.start(start, core)
      }
    }
    endUnbegun()
  }

  private func start(_ start: Start, _ core: SessionCore) {
    start.load?.suspensionChanged(of: self)
    if start.isFirst {
      core.start(self)
    } else if core.isBackground {
      core.background?.suspensionChanged(of: self)
    }
  }

  /// Completes the task. Its properties show the result before its owner is notified.
  ///
  /// - Parameters:
  ///   - isDelivered: Whether the owner has the result already, so that ``cancel()`` comes too late.
  ///   - last: Changes what the task shows in the same step, unless the task has been cancelled.
  /// - Returns: The task's error. A load that succeeds after ``cancel()`` has failed all the same, unless
  ///   `isDelivered`.
  @discardableResult
  func complete(
    _ failure: (any Error)?, isDelivered: Bool = false, showing last: (inout Shown) -> Void = { _ in }
  ) -> (any Error)? {
    let (failure, isWatched) = read { details in
      details.show(last)
      return (details.complete(failure, isDelivered: isDelivered), details.progress != nil)
    }
    if isWatched { updateProgress() }
    return failure
  }

  /// Releases the load, the session and the delegate, which a task keeps until it is complete.
  ///
  /// - Returns: The session.
  @discardableResult
  func releaseReferences() -> URLSession? {
    let last = read { details in
      defer {
        details.load = nil
        details.session = nil
        details.delegate = nil
      }
      return (load: details.load, session: details.session, delegate: details.delegate)
    }
    // Deinitialisers of these objects may call the task: not while its lock is held.
    return withExtendedLifetime(last) { last.session }
  }

  /// The priority in the pool, from 0 to 255.
  var poolPriority: UInt8 { Self.poolPriority(read { $0.priority }) }

  static var poolPriorityDefault: UInt8 { poolPriority(0.5) }

  private static func poolPriority(_ priority: Float) -> UInt8 { UInt8(clamping: Int(priority * 255)) }

  var isSuspended: Bool { read { $0.state == .suspended } }

  /// Whether the task has never run.
  var isUnbegun: Bool { read { !$0.hasStarted } }

  /// Whether the task has been started and is neither cancelled nor complete.
  var isUnderWay: Bool { read { $0.hasStarted && ($0.state == .running || $0.state == .suspended) } }
}

/// A task that loads a URL into memory, or delivers it piece by piece to a delegate.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
