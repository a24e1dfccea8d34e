import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Makes tasks of a session, and hears of them: blocks take the place of a delegate, and a response serializer makes
/// something useful of what comes.
///
/// For any thread. Handlers are called on ``completionQueue``, which is the main queue if none is set, and the other
/// blocks on ``operationQueue``. A program whose main thread does not serve the main queue sets a completion queue, or
/// uses the async forms, which need none.
///
/// A session keeps its delegate: a manager lives until ``invalidateSessionCancelingTasks(_:resetSession:)``, as it does
/// on Apple's systems.
open class AFURLSessionManager: NSObject, NSSecureCoding, NSCopying, URLSessionSelectiveDelegate,
  URLSessionDataDelegate, URLSessionDownloadDelegate, AFResponseSerializerOwner, @unchecked Sendable
{
  let blocks = SessionBlocks()
  let state: Mutex<ManagerState>
  /// A subclass may have overridden any of the delegate's methods: it gets every call.
  let hearsEverything: Bool
  /// Whether anybody has ever wanted to see how far one of the tasks is. Until then no task has to be asked about.
  let hasWatchedTasks = Atomic(false)

  /// With the default configuration.
  public override convenience init() { self.init(sessionConfiguration: nil) }

  /// - Parameter configuration: Copied. Nil: the default configuration.
  public init(sessionConfiguration configuration: URLSessionConfiguration?) {
    state = Mutex(ManagerState(configuration ?? .default))
    hearsEverything = Self.mayOverride
    super.init()
  }

  private static var mayOverride: Bool { self != AFURLSessionManager.self && self != AFHTTPSessionManager.self }

  var storedResponseSerializer: any AFURLResponseSerialization {
    get { state.withLock { $0 }.responseSerializer }
    set { state.put(newValue, at: \.responseSerializer) }
  }

  // MARK: - What it has

  /// The session that makes the tasks. Made when it is first asked for, and anew after it has been reset.
  open var session: URLSession { state.withLock { $0.session(of: self) } }

  /// Where the session calls the manager and its blocks. It makes one call at a time.
  open var operationQueue: OperationQueue {
    state.withLock { state in
      let queue = state.operationQueue ?? state.session(of: self).delegateQueue
      state.operationQueue = queue
      return queue
    }
  }

  /// Where handlers are called. Nil, as it is from the beginning: on the main queue.
  open var completionQueue: DispatchQueue? {
    get { state.withLock { $0.completionQueue } }
    set { state.put(newValue, at: \.completionQueue) }
  }

  /// What handlers are called within. Nil, as it is from the beginning: a group that nobody waits for. A handler enters
  /// it when the response has been serialized, and leaves it when it has returned.
  open var completionGroup: DispatchGroup? {
    get { state.withLock { $0.completionGroup } }
    set { state.put(newValue, at: \.completionGroup) }
  }

  /// Decides whether a server is trusted. From the beginning: as the system does. Asked for every server's certificate,
  /// unless a block decides.
  open var securityPolicy: AFSecurityPolicy {
    get { state.withLock { $0.securityPolicy } }
    set { state.put(newValue, at: \.securityPolicy) }
  }

  /// From the beginning the shared one.
  open var reachabilityManager: AFNetworkReachabilityManager {
    get { state.withLock { $0.reachabilityManager } ?? .shared() }
    set { state.put(newValue, at: \.reachabilityManager) }
  }

  /// Kept as it is set, without effect: a session makes its upload tasks at once, also one of a background
  /// configuration.
  open var attemptsToRecreateUploadTasksForBackgroundSessions: Bool {
    get { state.withLock { $0.attemptsToRecreateUploadTasks } }
    set { state.withLock { $0.attemptsToRecreateUploadTasks = newValue } }
  }

  /// The tasks that are not over.
  open var tasks: [URLSessionTask] { state.withLock { $0.tasks } }

  /// The data tasks that are not over. Upload tasks are not among them.
  open var dataTasks: [URLSessionDataTask] {
    tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask }
  }

  /// The upload tasks that are not over.
  open var uploadTasks: [URLSessionUploadTask] { tasks.compactMap { $0 as? URLSessionUploadTask } }

  /// The download tasks that are not over.
  open var downloadTasks: [URLSessionDownloadTask] { tasks.compactMap { $0 as? URLSessionDownloadTask } }

  /// Ends the session, which lets go of the manager when the last task is over.
  ///
  /// - Parameters:
  ///   - cancelPendingTasks: Whether the tasks are cancelled. If not, they end as they would.
  ///   - resetSession: Whether the manager goes on with a new session. If not, the tasks that it makes from now on end
  ///     with `URLError.cancelled`.
  open func invalidateSessionCancelingTasks(_ cancelPendingTasks: Bool, resetSession: Bool) {
    guard let session = state.withLock({ $0.end(resets: resetSession, self) }) else { return }
    if cancelPendingTasks { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
  }

  /// As `invalidateSessionCancelingTasks(_:resetSession:)`, with a new session if the tasks are cancelled.
  @available(*, deprecated, renamed: "invalidateSessionCancelingTasks(_:resetSession:)")
  open func invalidateSessionCancelingTasks(_ cancelPendingTasks: Bool) {
    invalidateSessionCancelingTasks(cancelPendingTasks, resetSession: cancelPendingTasks)
  }

  // MARK: - Data tasks

  /// A data task, which is resumed by the caller.
  ///
  /// - Parameters:
  ///   - uploadProgressBlock: Called on ``operationQueue`` as the body leaves.
  ///   - downloadProgressBlock: Called on ``operationQueue`` as the content comes.
  ///   - completionHandler: Called once, on ``completionQueue``, with the response, what the serializer has made of it,
  ///     and what has gone wrong. Without any response it is an empty `URLResponse` for the request's URL.
  ///   - request: What is to be loaded.
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

  /// An upload task whose body is a file.
  @discardableResult
  open func uploadTask(
    with request: URLRequest, fromFile fileURL: URL, progress uploadProgressBlock: ((Progress) -> Void)? = nil,
    completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
  ) -> URLSessionUploadTask {
    addUpload({ $0.uploadTask(with: request, fromFile: fileURL) }, uploadProgressBlock, completionHandler)
  }

  /// An upload task whose body is some bytes.
  @discardableResult
  open func uploadTask(
    with request: URLRequest, from bodyData: Data?, progress uploadProgressBlock: ((Progress) -> Void)? = nil,
    completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
  ) -> URLSessionUploadTask {
    addUpload({ $0.uploadTask(with: request, from: bodyData ?? Data()) }, uploadProgressBlock, completionHandler)
  }

  /// An upload task whose body is the request's stream.
  @discardableResult
  open func uploadTask(
    withStreamedRequest request: URLRequest, progress uploadProgressBlock: ((Progress) -> Void)? = nil,
    completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
  ) -> URLSessionUploadTask {
    addUpload({ $0.uploadTask(withStreamedRequest: request) }, uploadProgressBlock, completionHandler)
  }

  // MARK: - Download tasks

  /// A download task.
  ///
  /// - Parameters:
  ///   - downloadProgressBlock: Called on ``operationQueue`` as the content comes.
  ///   - destination: Says where the file goes; called on ``operationQueue`` with the file that it is now, and the
  ///     response. There must be no file there yet. Without it the file is gone when the task is over.
  ///   - completionHandler: Called once, on ``completionQueue``, with the response, the file, and what has gone wrong.
  ///   - request: What is to be loaded.
  @discardableResult
  open func downloadTask(
    with request: URLRequest, progress downloadProgressBlock: ((Progress) -> Void)? = nil,
    destination: ((URL, URLResponse) -> URL)? = nil,
    completionHandler: ((URLResponse, URL?, (any Error)?) -> Void)?
  ) -> URLSessionDownloadTask {
    addDownload({ $0.downloadTask(with: request) }, downloadProgressBlock, destination, completionHandler)
  }

  /// A download task that goes on with an earlier one. The other parameters are those of
  /// ``downloadTask(with:progress:destination:completionHandler:)``.
  ///
  /// - Parameters:
  ///   - resumeData: From a download's `cancel(byProducingResumeData:)`, or from the error of one that has
  ///     failed.
  ///   - completionHandler: Called once, on the completion queue.
  ///   - destination: Says where the file goes.
  ///   - downloadProgressBlock: Called on the operation queue as the content comes.
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

  /// How far the body of one of its tasks is. Cancelling, pausing and resuming it acts on the task. Nil: the task is
  /// none of the manager's, or is over.
  open func uploadProgress(for task: URLSessionTask) -> Progress? { watched(task)?.uploadProgress }

  /// How far the content of one of its tasks is. Cancelling, pausing and resuming it acts on the task. Nil: the task is
  /// none of the manager's, or is over.
  open func downloadProgress(for task: URLSessionTask) -> Progress? { watched(task)?.downloadProgress }

  // MARK: - What the session tells

  open func urlSession(_ session: URLSession, wants call: URLSessionDelegateCall, for task: URLSessionTask) -> Bool {
    if hearsEverything || blocks.wants(call) { return true }
    guard hasWatchedTasks.load(ordering: .acquiring) else { return false }
    switch call {
    case .pieces, .writtenData: return record(of: task)?.watchesDownload ?? true
    case .sentBody: return record(of: task)?.watchesUpload ?? true
    case .endOnQueue: return record(of: task)?.isWatched ?? true
    case .response, .cachedResponse, .redirection, .informationalResponse: return false
    }
  }

  open func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
    state.withLock { _ = $0.noted(task) }
  }

  open func urlSession(_ session: URLSession, didResume task: URLSessionTask) {
    NotificationOutbox.main.post(.AFNetworkingTaskDidResume, task)
  }

  open func urlSession(_ session: URLSession, didSuspend task: URLSessionTask) {
    NotificationOutbox.main.post(.AFNetworkingTaskDidSuspend, task)
  }

  /// A task that somebody awaits, or that has a handler of its own, tells its end to them alone.
  open func urlSession(_ session: URLSession, didEnd task: URLSessionTask) { _ = state.withLock { $0.forget(task) } }

  open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    blocks.current.set.sessionDidBecomeInvalid?(session, error ?? URLError(.cancelled))
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
    guard let block = blocks.current.set.taskWillPerformHTTPRedirection else { return completionHandler(request) }
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
    // A form's stream can be copied, and begins anew.
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
    if blocks.wants(.endOnQueue) { blocks.current.set.taskDidFinishCollectingMetrics?(session, task, metrics) }
  }

  open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let record = state.withLock { $0.forget(task) }
    // First: the handler is called on another queue, which may be quick.
    if blocks.wants(.endOnQueue) { blocks.current.set.taskDidComplete?(session, task, error) }
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
    if blocks.wants(.endOnQueue) { blocks.current.set.dataTaskDidReceiveData?(session, dataTask, data) }
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
  ) { place(downloadTask, of: session, from: location) }

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

  /// Of a configuration an archive keeps the identifier, if it has one.
  public required init?(coder decoder: NSCoder) {
    state = Mutex(ManagerState(.archived(in: decoder) ?? .default))
    hearsEverything = Self.mayOverride
    super.init()
  }

  open func encode(with coder: NSCoder) {
    guard let identifier = state.withLock({ $0.configuration.identifier }) else { return }
    coder.encode(NSString(string: identifier), forKey: "identifier")
  }

  open override func copy() -> Any { copy(with: nil) }

  /// A manager of the same class with a session of its own, of the same configuration. Blocks, serializers and policies
  /// are not copied.
  open func copy(with zone: NSZone? = nil) -> Any { blank() ?? self }

  /// One of a subclass is made by `init(coder:)`, the one initializer that every subclass has.
  func blank() -> AFURLSessionManager? {
    guard let coder = EmptyArchive.decoder(), let manager = type(of: self).init(coder: coder) else { return nil }
    let configuration = state.withLock { $0.configuration }
    manager.state.withLock { $0.begin(with: configuration) }
    return manager
  }
}
