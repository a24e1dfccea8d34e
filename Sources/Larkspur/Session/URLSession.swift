import Foundation
import Synchronization

/// The length of a transfer, in bytes, when nobody knows it.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// The key of the resume data in the `userInfo` of a failed download's error.
public let URLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// The same by the name that it has on Darwin.
public let NSURLSessionDownloadTaskResumeData = URLSessionDownloadTaskResumeData

/// The key of the resume data in the `userInfo` of a failed upload's error. No error has it in this version.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

/// Makes tasks that load URLs, and holds what they share: connections, cookies, cache, credentials, and a delegate.
///
/// For any thread. A session keeps its delegate, and itself while it has tasks or a delegate, until it is invalidated with
/// ``finishTasksAndInvalidate()`` or ``invalidateAndCancel()``. One without a delegate goes with its last reference.
///
/// ```swift
/// let (data, response) = try await URLSession.shared.data(from: url)
/// ```
open class URLSession: NSObject, @unchecked Sendable {
  /// What becomes of a challenge.
  public enum AuthChallengeDisposition: Int, Sendable {
    /// The credential answers it. Nil: the request goes on without one.
    case useCredential = 0
    /// As if there were no delegate: what is proposed is tried, and certificates are verified.
    case performDefaultHandling = 1
    /// The task is cancelled, or the connection refused.
    case cancelAuthenticationChallenge = 2
    /// Another challenge of the same response is asked about, if there is one. Certificates are verified.
    case rejectProtectionSpace = 3
  }

  /// What becomes of a task whose response has begun.
  public enum ResponseDisposition: Int, Sendable {
    /// The task is cancelled.
    case cancel = 0
    /// The content follows.
    case allow = 1
    /// The content goes into a file, of a download task in the place of this one.
    case becomeDownload = 2
    /// Not in this version: the task fails with `URLError.unsupportedURL`.
    case becomeStream = 3
  }

  /// What becomes of a task that was to begin later.
  public enum DelayedRequestDisposition: Int, Sendable {
    /// The request is sent as it is.
    case continueLoading = 0
    /// Another one is sent in its place.
    case useNewRequest = 1
    /// The task is cancelled.
    case cancel = 2
  }

  let core: SessionCore
  private let text = Mutex<String?>(nil)

  /// The session of programs that need no settings: it has no delegate, and cannot be invalidated.
  open class var shared: URLSession { sharedSession }
  private static let sharedSession = URLSession(configuration: .default, isShared: true)

  private init(configuration: URLSessionConfiguration, isShared: Bool) {
    core = SessionCore(configuration.copied(), delegate: nil, queue: nil, isShared: isShared)
    super.init()
  }

  /// A session with the default configuration: for subclasses in tests.
  public override init() {
    core = SessionCore(URLSessionConfiguration.default.copied(), delegate: nil, queue: nil)
    super.init()
  }

  /// A session without a delegate. The configuration is copied: what changes in it later has no effect here.
  public init(configuration: URLSessionConfiguration) {
    core = SessionCore(configuration.copied(), delegate: nil, queue: nil)
    super.init()
  }

  /// - Parameters:
  ///   - configuration: Copied: what changes in it later has no effect here.
  ///   - delegate: Kept until the session is invalidated.
  ///   - queue: Where the delegate and completion handlers are called. It should be serial. Nil: a serial queue of the
  ///     session's own.
  public init(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
  ) {
    core = SessionCore(configuration.copied(), delegate: delegate, queue: queue)
    super.init()
    if delegate != nil { core.keepSession(self) }
  }

  deinit { core.sessionGone() }

  /// Where the delegate and completion handlers are called: the queue that was given, or a serial one of the session's own.
  ///
  /// It is `OperationQueue.current` in each call. Only the pieces of bodies, and what the task does not wait for (how much of a body
  /// has left, interim responses, waiting for a network), come to a queue of the session's own without an operation, unless
  /// somebody has asked for the queue before.
  open var delegateQueue: OperationQueue { core.delegateQueue.operations }

  /// Nil: there is none, or the session is over and has let it go.
  open var delegate: (any URLSessionDelegate)? { core.delegate }

  /// A copy: changing it has no effect on the session.
  open var configuration: URLSessionConfiguration { core.configuration.copied() }

  /// For people to read. No meaning to the session.
  open var sessionDescription: String? {
    get { text.withLock { $0 } }
    set { text.withLock { $0 = newValue } }
  }

  /// Lets the tasks that exist end, and makes no more. Then the delegate hears of it and is let go. No effect on the shared
  /// session.
  open func finishTasksAndInvalidate() { core.invalidate(cancelsTasks: false) }

  /// Cancels all tasks, and makes no more. Then the delegate hears of it and is let go. No effect on the shared session.
  open func invalidateAndCancel() { core.invalidate(cancelsTasks: true) }

  /// Forgets cookies, cached responses and credentials, and closes connections: what follows begins afresh. Tasks that run
  /// go on.
  open func reset(completionHandler: @escaping @Sendable () -> Void) {
    core.reset { [core] in core.delegateQueue.insist(completionHandler) }
  }

  /// Writes cookies, credentials and cache to the disk, and makes new connections for what follows.
  open func flush(completionHandler: @escaping @Sendable () -> Void) {
    core.flush { [core] in core.delegateQueue.insist(completionHandler) }
  }

  /// The tasks that have been resumed and are not over, by kind: one that was never resumed is not among them, as in
  /// Foundation. The handler is called on the delegate queue.
  open func getTasksWithCompletionHandler(
    _ completionHandler:
      @escaping @Sendable (
        [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
      ) -> Void
  ) {
    core.delegateQueue.insist { [core] in
      let tasks = core.tasks.filter(\.isKnown)
      completionHandler(
        tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
        tasks.compactMap { $0 as? URLSessionUploadTask }, tasks.compactMap { $0 as? URLSessionDownloadTask })
    }
  }

  /// The tasks that have been resumed and are not over; the handler is called on the delegate queue.
  open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
    core.delegateQueue.insist { [core] in completionHandler(core.tasks.filter(\.isKnown)) }
  }

  // MARK: - Makers of tasks. A new task is suspended: it begins with its first `resume()`. A session that has been
  // invalidated makes tasks that end with `URLError.cancelled`.

  private func make<Kind: URLSessionTask>(_ task: Kind) -> Kind {
    core.register(task, self)
    return task
  }

  // MARK: - Data

  /// A task that tells the delegate of the content as it comes.
  open func dataTask(with request: URLRequest) -> URLSessionDataTask {
    make(URLSessionDataTask(core, request: request, output: .delegate))
  }

  /// The same of a URL, by GET.
  open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

  /// The handler is called once, on the delegate queue. The delegate hears of challenges, redirections and metrics
  /// only.
  open func dataTask(
    with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDataTask {
    make(URLSessionDataTask(core, request: request, output: .dataHandler(completionHandler)))
  }

  /// The same of a URL, by GET.
  open func dataTask(
    with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDataTask {
    dataTask(with: URLRequest(url: url), completionHandler: completionHandler)
  }

  // MARK: - Upload

  /// The file is sent as it is when the task runs. If its size changes on the way, the task fails. A file that says that it is empty
  /// and is not, as those in `/proc` do, is sent in chunks.
  open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .file(fileURL), output: .delegate))
  }

  /// The data is sent as the body, in place of the request's own.
  open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .data(bodyData), output: .delegate))
  }

  /// The body comes from a stream that the delegate is asked for, each time that it is sent; if the delegate gives none, from
  /// the request's.
  open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .delegateStream, output: .delegate))
  }

  /// As ``uploadTask(with:fromFile:)``. The handler is called once, on the delegate queue.
  open func uploadTask(
    with request: URLRequest, fromFile fileURL: URL,
    completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .file(fileURL), output: .dataHandler(completionHandler)))
  }

  /// As ``uploadTask(with:from:)``; nil is an empty body. The handler is called once, on the delegate queue.
  open func uploadTask(
    with request: URLRequest, from bodyData: Data?,
    completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionUploadTask {
    let source = BodySource.data(bodyData ?? Data())
    return make(URLSessionUploadTask(core, request: request, source: source, output: .dataHandler(completionHandler)))
  }

  /// Would go on with an upload at a server that speaks the draft of resumable uploads. Not spoken in this version, which
  /// makes no resume data of uploads: the task fails with `URLError.unsupportedURL` when it is resumed.
  open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
    make(ResumedUploadTask(core, request: nil, output: .delegate))
  }

  /// As ``uploadTask(withResumeData:)``.
  open func uploadTask(
    withResumeData resumeData: Data,
    completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionUploadTask {
    make(ResumedUploadTask(core, request: nil, output: .dataHandler(completionHandler)))
  }

  // MARK: - Download

  /// A task whose delegate is given the file.
  open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, request: request, output: .delegate))
  }

  /// The same of a URL, by GET.
  open func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

  /// The file is removed when the handler has returned: move it, or read it.
  open func downloadTask(
    with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, request: request, output: .fileHandler(completionHandler)))
  }

  /// The same of a URL, by GET. The file is removed when the handler has returned: move it, or read it.
  open func downloadTask(
    with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDownloadTask {
    downloadTask(with: URLRequest(url: url), completionHandler: completionHandler)
  }

  /// Goes on with a download that has been cancelled or has failed. If the resource has changed since, or what was there
  /// is gone, it begins again from its beginning.
  ///
  /// - Parameter resumeData: From ``URLSessionDownloadTask/cancel(byProducingResumeData:)``, or from an error's
  ///   `downloadTaskResumeData`. With data that this user's sessions have not made the task fails with
  ///   `URLError.unsupportedURL`.
  open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, resumeData: resumeData, output: .delegate))
  }

  /// As ``downloadTask(withResumeData:)``. The file is removed when the handler has returned: move it, or read it.
  open func downloadTask(
    withResumeData resumeData: Data,
    completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, resumeData: resumeData, output: .fileHandler(completionHandler)))
  }

  // MARK: - Other kinds

  /// Not spoken in this version: the task fails when it is resumed.
  open func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: URLRequest(url: url)) }

  /// Not spoken in this version: the task fails when it is resumed.
  open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
    var request = URLRequest(url: url)
    if !protocols.isEmpty {
      request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
    }
    return webSocketTask(with: request)
  }

  /// Not spoken in this version: the task fails when it is resumed.
  open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
    make(URLSessionWebSocketTask(core, request: request, output: .delegate))
  }

  /// Not supported in this version: the task fails when it is resumed.
  open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
    make(URLSessionStreamTask(core, request: nil, output: .delegate))
  }
}
