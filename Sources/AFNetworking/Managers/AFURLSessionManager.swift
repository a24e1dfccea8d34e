import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Creates a session's tasks, and is the session's delegate: blocks take the place of delegate methods, and a response
/// serializer makes objects of the responses.
///
/// Safe to use from any thread. Handlers are called on ``completionQueue``, which is the main queue by default, and the
/// other blocks on ``operationQueue``. A program whose main thread does not serve the main queue sets a completion
/// queue, or uses the async functions, which need no queue.
///
/// A session retains its delegate: a manager lives until ``invalidateSessionCancelingTasks(_:resetSession:)``, as on
/// Apple's systems.
open class AFURLSessionManager: NSObject, NSSecureCoding, NSCopying, URLSessionSelectiveDelegate,
  URLSessionDataDelegate, URLSessionDownloadDelegate, AFResponseSerializerOwner, @unchecked Sendable
{
  let blocks = SessionBlocks()
  let state: Mutex<ManagerState>
  /// Whether the manager receives every delegate call: `true` for subclasses, which may override any of the methods.
  let needsAllCalls: Bool
  /// Whether any task has ever had a progress observer. Before this, no task has to be looked up. `watched(_:)` and
  /// `add(_:_:)` store `true` with release order; `urlSession(_:wants:for:)` loads with acquire order.
  let hasWatchedTasks = Atomic(false)

  /// Creates a manager with the default configuration.
  public override convenience init() { self.init(sessionConfiguration: nil) }

  /// Creates a manager.
  ///
  /// - Parameter configuration: The configuration, which is copied, or `nil` for the default one.
  public init(sessionConfiguration configuration: URLSessionConfiguration?) {
    state = Mutex(ManagerState(configuration ?? .default))
    needsAllCalls = Self.mayOverride
    super.init()
    makeBackgroundSessionSoon()
  }

  /// Creates the session of a background configuration, whose tasks of an earlier process are to continue: when the main
  /// thread has set the manager's blocks and serves the main queue, and otherwise after a time.
  func makeBackgroundSessionSoon() {
    guard state.withLock({ $0.configuration.identifier != nil }) else { return }
    if Thread.isMainThread { DispatchQueue.main.async { [weak self] in self?.makeBackgroundSession() } }
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100)) { [weak self] in
      self?.makeBackgroundSession()
    }
  }

  private func makeBackgroundSession() {
    // The tasks of an earlier process get records, as if this manager had created them.
    session.getAllTasks { [weak self] tasks in self?.note(tasks) }
  }

  /// Makes records of tasks that the manager has not created.
  private func note(_ tasks: [URLSessionTask]) {
    state.withLock { state in
      for task in tasks where task.state != .completed { _ = state.noted(task) }
    }
  }

  private static var mayOverride: Bool { self != AFURLSessionManager.self && self != AFHTTPSessionManager.self }

  var storedResponseSerializer: any AFURLResponseSerialization {
    get { state.withLock { $0 }.responseSerializer }
    set { state.put(newValue, at: \.responseSerializer) }
  }

  // MARK: - Properties

  /// The session that creates the tasks. Created when it is first needed, and again after a reset. A background session
  /// is created by itself, so that its tasks of an earlier process continue: when the main thread, if it has created the
  /// manager, serves the main queue next, and 100 ms after the manager at the latest. The blocks that the program sets
  /// until then are called for these tasks. A complete download waits for its block
  /// (``setDownloadTaskDidFinishDownloadingBlock(_:)``).
  open var session: URLSession { state.withLock { $0.session(of: self) } }

  /// The queue on which the session calls the manager and its blocks, one call at a time.
  open var operationQueue: OperationQueue {
    state.withLock { state in
      let queue = state.operationQueue ?? state.session(of: self).delegateQueue
      state.operationQueue = queue
      return queue
    }
  }

  /// The queue for handlers, or `nil`, the default, for the main queue.
  open var completionQueue: DispatchQueue? {
    get { state.withLock { $0.completionQueue } }
    set { state.put(newValue, at: \.completionQueue) }
  }

  /// The dispatch group for handlers, or `nil`, the default, for none. A handler enters the group when the response has
  /// been serialized, and leaves it on return.
  open var completionGroup: DispatchGroup? {
    get { state.withLock { $0.completionGroup } }
    set { state.put(newValue, at: \.completionGroup) }
  }

  /// Decides whether a server is trusted. By default as the system does. Used for every server's certificate, unless a
  /// block decides.
  open var securityPolicy: AFSecurityPolicy {
    get { state.withLock { $0.securityPolicy } }
    set { state.put(newValue, at: \.securityPolicy) }
  }

  /// The manager that monitors reachability: the shared one by default.
  open var reachabilityManager: AFNetworkReachabilityManager {
    get { state.withLock { $0.reachabilityManager } ?? .shared() }
    set { state.put(newValue, at: \.reachabilityManager) }
  }

  /// Whether to try again to create an upload task of a background session, up to three times, if the session does not
  /// create it. Sessions always create it here, so the property has no effect.
  open var attemptsToRecreateUploadTasksForBackgroundSessions: Bool {
    get { state.withLock { $0.attemptsToRecreateUploadTasks } }
    set { state.withLock { $0.attemptsToRecreateUploadTasks = newValue } }
  }

  /// The tasks that are not over. For a background session this includes those of an earlier process: the session is
  /// created, and a transfer service that does not answer is waited for, 5 s at most.
  open var tasks: [URLSessionTask] {
    if state.withLock({ $0.configuration.identifier != nil }) { note(session.presentTasks) }
    return state.withLock { $0.tasks }
  }

  /// The data tasks that are not over, without upload tasks.
  open var dataTasks: [URLSessionDataTask] {
    tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask }
  }

  /// The upload tasks that are not over.
  open var uploadTasks: [URLSessionUploadTask] { tasks.compactMap { $0 as? URLSessionUploadTask } }

  /// The download tasks that are not over.
  open var downloadTasks: [URLSessionDownloadTask] { tasks.compactMap { $0 as? URLSessionDownloadTask } }

  /// Invalidates the session, which releases the manager when the last task is over.
  ///
  /// - Parameters:
  ///   - cancelPendingTasks: Whether to cancel the tasks. If not, they run to their end.
  ///   - resetSession: Whether the manager continues with a new session. If not, tasks that it creates from now on end
  ///     with `URLError.cancelled`.
  open func invalidateSessionCancelingTasks(_ cancelPendingTasks: Bool, resetSession: Bool) {
    guard let session = state.withLock({ $0.end(resets: resetSession, self) }) else { return }
    if cancelPendingTasks { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
  }

  /// Invalidates the session like `invalidateSessionCancelingTasks(_:resetSession:)`, with a new session if the tasks
  /// are cancelled.
  @available(*, deprecated, renamed: "invalidateSessionCancelingTasks(_:resetSession:)")
  open func invalidateSessionCancelingTasks(_ cancelPendingTasks: Bool) {
    invalidateSessionCancelingTasks(cancelPendingTasks, resetSession: cancelPendingTasks)
  }

  // MARK: - Data tasks

  /// Creates a data task. The caller resumes it.
  ///
  /// - Parameters:
  ///   - uploadProgressBlock: Called on ``operationQueue`` while the body is sent.
  ///   - downloadProgressBlock: Called on ``operationQueue`` while the content arrives.
  ///   - completionHandler: Called once, on ``completionQueue``, with the response, the serializer's object, and the
  ///     error. If there is no response, the handler receives an empty `URLResponse` for the request's URL.
  ///   - request: The request to load.
  @discardableResult
  open func dataTask(
    with request: URLRequest, uploadProgress uploadProgressBlock: ((Progress) -> Void)? = nil,
    downloadProgress downloadProgressBlock: ((Progress) -> Void)? = nil,
    completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
  ) -> URLSessionDataTask {
    add({ $0.dataTask(with: request) }) {
      $0.uploadBlock = uploadProgressBlock
      $0.downloadBlock = downloadProgressBlock
      if let completionHandler { $0.receiver = .handler(completionHandler) }
    }
  }

  // MARK: - Upload tasks

  /// Creates an upload task whose body is a file.
  @discardableResult
  open func uploadTask(
    with request: URLRequest, fromFile fileURL: URL, progress uploadProgressBlock: ((Progress) -> Void)? = nil,
    completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
  ) -> URLSessionUploadTask {
    addUpload({ $0.uploadTask(with: request, fromFile: fileURL) }, uploadProgressBlock, completionHandler)
  }

  /// Creates an upload task whose body is bytes.
  @discardableResult
  open func uploadTask(
    with request: URLRequest, from bodyData: Data?, progress uploadProgressBlock: ((Progress) -> Void)? = nil,
    completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
  ) -> URLSessionUploadTask {
    addUpload({ $0.uploadTask(with: request, from: bodyData ?? Data()) }, uploadProgressBlock, completionHandler)
  }

  /// Creates an upload task whose body is the request's stream.
  @discardableResult
  open func uploadTask(
    withStreamedRequest request: URLRequest, progress uploadProgressBlock: ((Progress) -> Void)? = nil,
    completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
  ) -> URLSessionUploadTask {
    addUpload({ $0.uploadTask(withStreamedRequest: request) }, uploadProgressBlock, completionHandler)
  }

  // MARK: - Download tasks

  /// Creates a download task.
  ///
  /// - Parameters:
  ///   - downloadProgressBlock: Called on ``operationQueue`` while the content arrives.
  ///   - destination: Returns the final location of the file. Called on ``operationQueue`` with the file's temporary
  ///     location, and the response. There must not be a file already. Without a destination, the file is deleted when
  ///     the task is over.
  ///   - completionHandler: Called once, on ``completionQueue``, with the response, the file, and the error.
  ///   - request: The request to load.
  @discardableResult
  open func downloadTask(
    with request: URLRequest, progress downloadProgressBlock: ((Progress) -> Void)? = nil,
    destination: ((URL, URLResponse) -> URL)? = nil,
    completionHandler: ((URLResponse, URL?, (any Error)?) -> Void)?
  ) -> URLSessionDownloadTask {
    addDownload({ $0.downloadTask(with: request) }, downloadProgressBlock, destination, completionHandler)
  }

  /// Creates a download task that resumes an earlier download. See
  /// ``downloadTask(with:progress:destination:completionHandler:)`` for the other parameters.
  ///
  /// - Parameters:
  ///   - resumeData: The result of a download's `cancel(byProducingResumeData:)`, or the resume data of a failed
  ///     download's error.
  ///   - completionHandler: Called once, on the completion queue.
  ///   - destination: Returns the final location of the file.
  ///   - downloadProgressBlock: Called on the operation queue while the content arrives.
  @discardableResult
  open func downloadTask(
    withResumeData resumeData: Data, progress downloadProgressBlock: ((Progress) -> Void)? = nil,
    destination: ((URL, URLResponse) -> URL)? = nil,
    completionHandler: ((URLResponse, URL?, (any Error)?) -> Void)?
  ) -> URLSessionDownloadTask {
    addDownload(
      { $0.downloadTask(withResumeData: resumeData) }, downloadProgressBlock, destination, completionHandler)
  }

  // MARK: - Progress

  /// Returns the progress of a task's request body, or `nil` if the task is over or does not belong to the manager.
  /// Cancelling, pausing and resuming the progress acts on the task.
  open func uploadProgress(for task: URLSessionTask) -> Progress? { watched(task)?.uploadProgress }

  /// Returns the progress of a task's content, or `nil` if the task is over or does not belong to the manager.
  /// Cancelling, pausing and resuming the progress acts on the task.
  open func downloadProgress(for task: URLSessionTask) -> Progress? { watched(task)?.downloadProgress }

  // MARK: - Delegate methods

  open func urlSession(_ session: URLSession, wants call: URLSessionDelegateCall, for task: URLSessionTask) -> Bool {
    if needsAllCalls || blocks.needsCall(call) { return true }
    guard hasWatchedTasks.load(ordering: .acquiring) else { return false }
    switch call {
    case .didReceiveData, .writtenData: return record(of: task)?.watchesDownload ?? true
    case .sentBody: return record(of: task)?.watchesUpload ?? true
    case .completionOnQueue: return record(of: task)?.isWatched ?? true
    case .response, .cachedResponse, .redirection, .informationalResponse: return false
    }
  }

  open func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
    let record = state.withLock { $0.noted(task) }
    EventSourceRun.current?.created(task, record)
  }

  open func urlSession(_ session: URLSession, didResume task: URLSessionTask) {
    NotificationOutbox.main.post(.AFNetworkingTaskDidResume, task)
  }

  open func urlSession(_ session: URLSession, didSuspend task: URLSessionTask) {
    NotificationOutbox.main.post(.AFNetworkingTaskDidSuspend, task)
  }

  /// Removes the record of a task that ended without `urlSession(_:task:didCompleteWithError:)`: an awaited task, or a
  /// task with a completion handler.
  open func urlSession(_ session: URLSession, didEnd task: URLSessionTask) {
    guard state.withLock({ $0.forget(task) }) != nil, AFNetworkActivityIndicatorManager.isWanted else { return }
    NotificationOutbox.main.post(.taskDidEndUnannounced, task)
  }

  open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    blocks.current.set.sessionDidBecomeInvalid?(session, error ?? URLError.make(.cancelled))
    NotificationCenter.default.post(name: .AFURLSessionDidInvalidate, object: session)
  }

  open func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) { answer(challenge, of: session, completionHandler) }

  open func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
    guard blocks.current.set.didFinishEvents != nil else { return }
    DispatchQueue.main.async { [blocks] in blocks.current.set.didFinishEvents?(session) }
  }

  open func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    guard let block = blocks.current.set.taskWillPerformHTTPRedirection else {
      return completionHandler(task.indifferentAnswer(to: request))
    }
    completionHandler(block(session, task, response, request))
  }

  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) { answer(challenge, of: task, session, completionHandler) }

  open func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    if let block = blocks.current.set.taskNeedNewBodyStream { return completionHandler(block(session, task)) }
    // The stream of a form can be copied, and the copy reads from the beginning.
    let stream = task.originalRequest?.httpBodyStream as? any NSCopying
    completionHandler(stream?.copy(with: nil) as? InputStream)
  }

  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    var total = totalBytesExpectedToSend
    if total < 0, let length = task.originalRequest?.value(forHTTPHeaderField: "Content-Length").flatMap({ Int64($0) })
    {
      total = length
    }
    record(of: task)?.sent(totalBytesSent, of: total)
    blocks.current.set.taskDidSendBodyData?(session, task, bytesSent, totalBytesSent, total)
  }

  open func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)
  {
    record(of: task)?.change { $0.metrics = metrics }
    if blocks.needsCall(.completionOnQueue) {
      blocks.current.set.taskDidFinishCollectingMetrics?(session, task, metrics)
    }
  }

  open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let record = state.withLock { $0.forget(task) }
    // Before `finish`: the task's handler runs on another queue, possibly at once.
    if blocks.needsCall(.completionOnQueue) { blocks.current.set.taskDidComplete?(session, task, error) }
    if let record { finish(record, error) }
  }

  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    guard let block = blocks.current.set.dataTaskDidReceiveResponse else { return completionHandler(.allow) }
    completionHandler(block(session, dataTask, response))
  }

  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) {
    replace(dataTask, by: downloadTask)
    blocks.current.set.dataTaskDidBecomeDownloadTask?(session, dataTask, downloadTask)
  }

  open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    record(of: dataTask)?.received(data)
    if blocks.needsCall(.completionOnQueue) { blocks.current.set.dataTaskDidReceiveData?(session, dataTask, data) }
  }

  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    guard let block = blocks.current.set.dataTaskWillCacheResponse else {
      return completionHandler(PassedOnResponse(proposedResponse))
    }
    completionHandler(block(session, dataTask, proposedResponse))
  }

  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) { moveDownload(downloadTask, of: session, from: location) }

  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    record(of: downloadTask)?.received(totalBytesWritten, of: totalBytesExpectedToWrite)
    blocks.current.set.downloadTaskDidWriteData?(
      session, downloadTask, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
  }

  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    record(of: downloadTask)?.received(fileOffset, of: expectedTotalBytes)
    blocks.current.set.downloadTaskDidResume?(session, downloadTask, fileOffset, expectedTotalBytes)
  }

  // MARK: - NSObject

  open override var description: String {
    "<\(type(of: self)): \(address), session: \(session), operationQueue: \(operationQueue)>"
  }

  open class var supportsSecureCoding: Bool { true }

  /// Creates a manager from an archive, which has only the configuration's identifier, if there is one.
  public required init?(coder decoder: NSCoder) {
    state = Mutex(ManagerState(.archived(in: decoder) ?? .default))
    needsAllCalls = Self.mayOverride
    super.init()
    makeBackgroundSessionSoon()
  }

  open func encode(with coder: NSCoder) {
    guard let identifier = state.withLock({ $0.configuration.identifier }) else { return }
    coder.encode(NSString(string: identifier), forKey: "identifier")
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns a manager of the same class with a new session and the same configuration. Blocks, serializers and
  /// policies are not copied.
  open func copy(with zone: NSZone? = nil) -> Any { blank() ?? self }

  /// Creates a manager of the same class. Uses `init(coder:)`, the one initializer that every subclass has.
  func blank() -> AFURLSessionManager? {
    guard let coder = EmptyArchive.decoder(), let manager = type(of: self).init(coder: coder) else { return nil }
    let configuration = state.withLock { $0.configuration }
    manager.state.withLock { $0.start(with: configuration) }
    manager.makeBackgroundSessionSoon()
    return manager
  }
}
