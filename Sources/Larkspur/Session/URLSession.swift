import Foundation
import Synchronization

/// The length of a transfer, in bytes, if it is unknown.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// The key of the resume data in the `userInfo` of a failed download's error.
public let URLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// Darwin's name for ``URLSessionDownloadTaskResumeData``.
public let NSURLSessionDownloadTaskResumeData = URLSessionDownloadTaskResumeData

/// The key of the resume data in the `userInfo` of a failed upload's error.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

/// A factory of tasks that load URLs, with the state that the tasks share: connections, cookies, cache, credentials and
/// a delegate.
///
/// For any thread. A session keeps its delegate, and keeps itself alive while it has tasks or a delegate, until it is
/// invalidated with ``finishTasksAndInvalidate()`` or ``invalidateAndCancel()``. A session without a delegate ends with
/// its last reference.
///
/// ```swift
/// let (data, response) = try await URLSession.shared.data(from: url)
/// ```
open class URLSession: NSObject, @unchecked Sendable {
  /// The answer to a challenge.
  public enum AuthChallengeDisposition: Int, Sendable {
    /// Answers with the credential. If the credential is `nil`, the request continues without one.
    case useCredential = 0
    /// Acts like a session without a delegate: tries the proposed credential, and verifies certificates.
    case performDefaultHandling = 1
    /// Cancels the task, or refuses the connection.
    case cancelAuthenticationChallenge = 2
    /// Continues with another challenge of the response, if there is one. Certificates are verified.
    case rejectProtectionSpace = 3
  }

  /// The answer to the head of a response.
  public enum ResponseDisposition: Int, Sendable {
    /// Cancels the task.
    case cancel = 0
    /// Continues with the content.
    case allow = 1
    /// Writes the content to a file. A download task takes the place of this task.
    case becomeDownload = 2
    /// Passes the connection to the program. A stream task takes the place of this task, and begins with the bytes
    /// behind the response's head, as they come from the server.
    case becomeStream = 3
  }

  /// The answer to a task that starts later than it was resumed.
  public enum DelayedRequestDisposition: Int, Sendable {
    /// Sends the request unchanged.
    case continueLoading = 0
    /// Sends another request in its place.
    case useNewRequest = 1
    /// Cancels the task.
    case cancel = 2
  }

  let core: SessionCore
  private let text = Mutex<String?>(nil)

  /// The session for programs that need no settings. The shared session has no delegate and cannot be invalidated.
  open class var shared: URLSession { sharedSession }
  private static let sharedSession = URLSession(configuration: .default, isShared: true)

  private init(configuration: URLSessionConfiguration, isShared: Bool) {
    core = SessionCore(configuration.copied(), delegate: nil, queue: nil, isShared: isShared)
    super.init()
  }

  /// Creates a session with the default configuration, for subclasses in tests.
  public override init() {
    core = SessionCore(URLSessionConfiguration.default.copied(), delegate: nil, queue: nil)
    super.init()
  }

  /// Creates a session without a delegate. The session copies the configuration: later changes do not reach the
  /// session.
  public init(configuration: URLSessionConfiguration) {
    core = SessionCore(configuration.copied(), delegate: nil, queue: nil)
    super.init()
    if core.isBackground { core.openBackground(self) }
  }

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - configuration: The settings. The session copies them: later changes do not reach the session.
  ///   - delegate: The delegate. The session keeps it until the session is invalidated.
  ///   - queue: The queue on which the session calls the delegate and completion handlers. The queue should be serial.
  ///     If it is `nil`, the session uses a private serial queue.
  public init(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
  ) {
    core = SessionCore(configuration.copied(), delegate: delegate, queue: queue)
    super.init()
    if delegate != nil { core.keepSession(self) }
    if core.isBackground { core.openBackground(self) }
  }

  deinit { core.sessionGone() }

  /// The queue on which the session calls the delegate and completion handlers: the queue that the program gave, or a
  /// private serial queue.
  ///
  /// In each call this queue is `OperationQueue.current`. The exceptions are frequent calls and calls that the
  /// task does not wait for: pieces of bodies after the first, bytes sent, interim responses, waiting for a network,
  /// and the metrics of awaited loads. On a private queue these come without an operation, until the program has read
  /// this property.
  open var delegateQueue: OperationQueue { core.delegateQueue.operations }

  /// The delegate, or `nil` if there is none, or if the session is over and has released it.
  open var delegate: (any URLSessionDelegate)? { core.delegate }

  /// A copy of the session's configuration: changing the copy has no effect on the session.
  open var configuration: URLSessionConfiguration { core.configuration.copied() }

  /// A human-readable text. The session does not use it.
  open var sessionDescription: String? {
    get { text.withLock { $0 } }
    set { text.withLock { $0 = newValue } }
  }

  /// Lets the existing tasks end, and starts no new ones. Then the session makes its last call to the delegate and
  /// releases the delegate. No effect on the shared session.
  open func finishTasksAndInvalidate() { core.invalidate(cancelsTasks: false) }

  /// Cancels all tasks, and starts no new ones. Then the session makes its last call to the delegate and releases the
  /// delegate. No effect on the shared session.
  open func invalidateAndCancel() { core.invalidate(cancelsTasks: true) }

  /// Removes cookies, cached responses and credentials, and closes connections: later requests start afresh. Running
  /// tasks continue. The handler is called on the delegate queue.
  open func reset(completionHandler: @escaping @Sendable () -> Void) {
    core.reset { [core] in core.delegateQueue.insist(completionHandler) }
  }

  /// Writes cookies and the cache to the disk, and makes later requests use new connections. Credentials need no flush.
  /// The handler is called on the delegate queue.
  open func flush(completionHandler: @escaping @Sendable () -> Void) {
    core.flush { [core] in core.delegateQueue.insist(completionHandler) }
  }

  /// Passes the tasks that have been resumed and are not over, by kind, to a handler on the delegate queue. As in
  /// Foundation, a task that was never resumed is not among them.
  open func getTasksWithCompletionHandler(
    _ completionHandler:
      @escaping @Sendable (
        [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
      ) -> Void
  ) {
    getAllTasks { tasks in
      completionHandler(
        tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
        tasks.compactMap { $0 as? URLSessionUploadTask }, tasks.compactMap { $0 as? URLSessionDownloadTask })
    }
  }

  /// Passes the tasks that have been resumed and are not over to a handler on the delegate queue.
  open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
    core.whenOpened { [core] in
      core.delegateQueue.insist { completionHandler(core.knownTasks) }
    }
  }

  // MARK: - Makers of tasks. A new task is suspended and starts with its first `resume()`. The tasks of an invalidated
  // session end with `URLError.cancelled`.

  private func make<Kind: URLSessionTask>(_ task: Kind) -> Kind {
    core.register(task, self)
    return task
  }

  // MARK: - Data

  /// Creates a task that delivers the content to the delegate as it arrives.
  open func dataTask(with request: URLRequest) -> URLSessionDataTask {
    make(URLSessionDataTask(core, request: request, output: .delegate))
  }

  /// Creates a task that loads a URL by GET, and delivers the content to the delegate as it arrives.
  open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

  /// Creates a task that loads a request into memory. The handler is called once, on the delegate queue. The handler
  /// replaces the delegate's calls for the response, the content, storing the response, and the end. The delegate still
  /// gets the other calls, such as challenges, redirections and metrics.
  open func dataTask(
    with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDataTask {
    make(URLSessionDataTask(core, request: request, output: .dataHandler(completionHandler)))
  }

  /// Creates a task that loads a URL into memory by GET. The handler is called once, on the delegate queue.
  open func dataTask(
    with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDataTask {
    dataTask(with: URLRequest(url: url), completionHandler: completionHandler)
  }

  // MARK: - Upload

  /// Creates a task that sends a file, as the file is when the task runs. If the file's size changes on the way, the
  /// task fails. A file that reports size 0 and is not empty, such as those in `/proc`, is sent in chunks.
  open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .file(fileURL), output: .delegate))
  }

  /// Creates a task that sends data in place of the request's own body.
  open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .data(bodyData), output: .delegate))
  }

  /// Creates a task that sends a stream. The delegate is asked for a stream each time that the body is sent; if the
  /// delegate provides no stream, the request's stream is sent.
  open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .delegateStream, output: .delegate))
  }

  /// Creates an upload task like ``uploadTask(with:fromFile:)``. The handler is called once, on the delegate queue.
  open func uploadTask(
    with request: URLRequest, fromFile fileURL: URL,
    completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionUploadTask {
    make(URLSessionUploadTask(core, request: request, source: .file(fileURL), output: .dataHandler(completionHandler)))
  }

  /// Creates an upload task like ``uploadTask(with:from:)``; `nil` is an empty body. The handler is called once, on the
  /// delegate queue.
  open func uploadTask(
    with request: URLRequest, from bodyData: Data?,
    completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionUploadTask {
    let source = BodySource.data(bodyData ?? Data())
    return make(URLSessionUploadTask(core, request: request, source: source, output: .dataHandler(completionHandler)))
  }

  /// Creates a task that continues an upload that was cancelled or failed, to the server that supports resumable
  /// uploads and has the first bytes. The task sends the bytes that the server does not have.
  ///
  /// The file has to be the one that was uploaded, unchanged; otherwise the task fails with `URLError.cannotOpenFile`
  /// or `fileDoesNotExist`. If the server does not have the upload any more, the task fails without resume data: start
  /// over then. See <doc:Resuming>.
  ///
  /// - Parameter resumeData: Data from ``URLSessionUploadTask/cancel(byProducingResumeData:)``, or from an error's
  ///   `uploadTaskResumeData`. If a session of this user did not produce the data, the task fails with
  ///   `URLError.unsupportedURL`.
  open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
    make(ResumedUploadTask.make(core, resumeData, output: .delegate))
  }

  /// Creates a task like ``uploadTask(withResumeData:)``. The handler is called once, on the delegate queue.
  open func uploadTask(
    withResumeData resumeData: Data,
    completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionUploadTask {
    make(ResumedUploadTask.make(core, resumeData, output: .dataHandler(completionHandler)))
  }

  // MARK: - Download

  /// Creates a task that downloads a request, and delivers the file to the delegate.
  open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, request: request, output: .delegate))
  }

  /// Creates a task that downloads a URL by GET, and delivers the file to the delegate.
  open func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

  /// Creates a task that downloads a request to a file. The file is removed when the handler has returned: move it or
  /// read it there.
  open func downloadTask(
    with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, request: request, output: .fileHandler(completionHandler)))
  }

  /// Creates a task that downloads a URL by GET to a file. The file is removed when the handler has returned: move it
  /// or read it there.
  open func downloadTask(
    with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDownloadTask {
    downloadTask(with: URLRequest(url: url), completionHandler: completionHandler)
  }

  /// Creates a task that continues a download that was cancelled or failed. If the resource has changed since then, or
  /// the partial file is gone, the task downloads from the beginning.
  ///
  /// - Parameter resumeData: Data from ``URLSessionDownloadTask/cancel(byProducingResumeData:)``, or from an error's
  ///   `downloadTaskResumeData`. If a session of this user did not produce the data, the task fails with
  ///   `URLError.unsupportedURL`.
  open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, resumeData: resumeData, output: .delegate))
  }

  /// Creates a task like ``downloadTask(withResumeData:)``. The file is removed when the handler has returned: move it
  /// or read it there.
  open func downloadTask(
    withResumeData resumeData: Data,
    completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
  ) -> URLSessionDownloadTask {
    make(URLSessionDownloadTask(core, resumeData: resumeData, output: .fileHandler(completionHandler)))
  }

  // MARK: - Other kinds

  /// Creates a WebSocket task for a `ws` or `wss` URL.
  open func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: URLRequest(url: url)) }

  /// Creates a WebSocket task that offers subprotocols (RFC 6455 1.9), the preferred one first.
  open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
    var request = URLRequest(url: url)
    if !protocols.isEmpty {
      request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
    }
    return webSocketTask(with: request)
  }

  /// Creates a WebSocket task for a request, whose fields are sent with the opening handshake. Subprotocols stand in
  /// `Sec-WebSocket-Protocol`.
  open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
    make(URLSessionWebSocketTask(core, request: request, output: .delegate))
  }

  /// Creates a stream task, which connects to a host and port when it is resumed.
  open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
    make(URLSessionStreamTask(core, host: hostname, port: port))
  }
}
