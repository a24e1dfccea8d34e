import Foundation
import LarkspurBytes

/// Async functions. Each runs its task on the session's loop: one hop there and one hop back, or no hop for a
/// caller that already runs there (``taskExecutor``). Cancelling the caller's task cancels the load, which then throws
/// `URLError.cancelled`.
extension URLSession {
  /// The loop of the session's tasks, as an executor for Swift tasks that prefer it: awaiting a load then costs no
  /// switch between threads. Child tasks inherit the preference.
  ///
  /// ```swift
  /// let data = try await withTaskExecutorPreference(session.taskExecutor) {
  ///   try await session.data(from: url).0
  /// }
  /// ```
  ///
  /// A loop is one thread, which other sessions share: code that runs there must not block, and should not compute for
  /// long. All loads of these sessions wait meanwhile, and a load that such code waits for by blocking never completes.
  /// Code that is isolated to an actor stays on its actor, as with any other executor.
  ///
  /// The value stays equal while the session takes new tasks, and is valid as long as the process runs. The value is
  /// `nil`, which prefers nothing, if the session has been invalidated or the system has no descriptors for a loop.
  public var taskExecutor: (any TaskExecutor)? { try? core.engine()?.loop }

  /// Loads a request into memory.
  ///
  /// The delegate gets the task's calls, such as challenges, redirections and metrics, before the session's delegate. A
  /// delegate that conforms to ``URLSessionDataDelegate`` also gets the response and the pieces of the content; the
  /// load continues without waiting for these calls.
  public func data(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let load = try core.load(for: request, self, delegate)
    try await core.run(load)
    return try load.takeData()
  }

  /// Loads a URL into memory.
  public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) {
    let load = try core.load(for: URLRequest(url: url), self, delegate)
    try await core.run(load)
    return try load.takeData()
  }

  /// Sends a file as the request's body, and loads the response into memory.
  public func upload(
    for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let load = try core.load(
      of: URLSessionUploadTask(core, request: request, source: .file(fileURL), output: .dataResult), self, delegate)
    try await core.run(load)
    return try load.takeData()
  }

  /// Sends data as the request's body, and loads the response into memory.
  public func upload(
    for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let load = try core.load(
      of: URLSessionUploadTask(core, request: request, source: .data(bodyData), output: .dataResult), self, delegate)
    try await core.run(load)
    return try load.takeData()
  }

  /// Continues an upload that was cancelled or failed, as ``uploadTask(withResumeData:)`` does, and loads the response
  /// into memory. If the upload fails and can be continued again, the error has new resume data: `uploadTaskResumeData`.
  public func upload(
    resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let load = try core.load(of: ResumedUploadTask.make(core, resumeData, output: .dataResult), self, delegate)
    try await core.run(load)
    return try load.takeData()
  }

  /// Loads a request into a file in the temporary directory. The file belongs to the caller.
  ///
  /// A delegate that conforms to ``URLSessionDownloadDelegate`` also gets the calls for content that has been written.
  public func download(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (URL, URLResponse) {
    let load = try core.load(
      of: URLSessionDownloadTask(core, request: request, output: .fileResult), self, delegate)
    try await core.run(load)
    return try load.takeFile()
  }

  /// Loads a URL into a file in the temporary directory. The file belongs to the caller.
  public func download(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (URL, URLResponse)
  {
    try await download(for: URLRequest(url: url), delegate: delegate)
  }

  /// Continues a download that was cancelled or failed, as ``downloadTask(withResumeData:)`` does. The file belongs to
  /// the caller. If the download fails and can be continued again, the error has new resume data:
  /// `downloadTaskResumeData`.
  public func download(
    resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (URL, URLResponse) {
    let load = try core.load(
      of: URLSessionDownloadTask(core, resumeData: resumeData, output: .fileResult), self, delegate)
    try await core.run(load)
    return try load.takeFile()
  }

  /// Loads a request, and returns when the head of the response has arrived. The body is read as the caller asks for
  /// its bytes.
  @_disfavoredOverload
  public func bytes(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (AsyncBytes, URLResponse) {
    let bytes = unstartedBytes(for: request, delegate: delegate)
    return (bytes, try await bytes.response())
  }

  /// Makes the task of an awaited body, which has not been started.
  ///
  /// - Parameters:
  ///   - idleTime: How long the body may pause, in nanoseconds, or `nil` for the request's timeout.
  ///   - isCached: Whether the session's cache may answer, and store the response.
  func unstartedBytes(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil, idleTime: UInt64? = nil,
    isCached: Bool = true
  ) -> AsyncBytes {
    let channel = BytesChannel(idleTime: idleTime, isCached: isCached)
    let task = URLSessionDataTask(core, request: request, output: .bytes(channel))
    task.delegate = delegate
    core.register(task, self)
    return AsyncBytes(channel, of: task)
  }

  /// Loads a URL, and returns when the head of the response has arrived. The body is read as the caller asks for its
  /// bytes.
  @_disfavoredOverload
  public func bytes(
    from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (AsyncBytes, URLResponse) {
    try await bytes(for: URLRequest(url: url), delegate: delegate)
  }

  // MARK: - Without a delegate

  // Darwin has these four functions beside those with a delegate. They let a session fulfil a program's protocol that
  // requires one.

  /// Loads a request into memory.
  @_disfavoredOverload
  public func data(for request: URLRequest) async throws -> (Data, URLResponse) {
    try await data(for: request, delegate: nil)
  }

  /// Loads a URL into memory.
  @_disfavoredOverload
  public func data(from url: URL) async throws -> (Data, URLResponse) { try await data(from: url, delegate: nil) }

  /// Sends a file as the request's body, and loads the response into memory.
  @_disfavoredOverload
  public func upload(for request: URLRequest, fromFile fileURL: URL) async throws -> (Data, URLResponse) {
    try await upload(for: request, fromFile: fileURL, delegate: nil)
  }

  /// Sends data as the request's body, and loads the response into memory.
  @_disfavoredOverload
  public func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
    try await upload(for: request, from: bodyData, delegate: nil)
  }

  // MARK: - The tasks

  /// The tasks that have been resumed and are not over, by kind.
  public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
    get async {
      await withCheckedContinuation { continuation in
        getTasksWithCompletionHandler { continuation.resume(returning: ($0, $1, $2)) }
      }
    }
  }

  /// The tasks that have been resumed and are not over.
  public var allTasks: [URLSessionTask] {
    get async { await withCheckedContinuation { continuation in getAllTasks { continuation.resume(returning: $0) } } }
  }

  /// The async form of ``reset(completionHandler:)``.
  public func reset() async { await withCheckedContinuation { continuation in reset { continuation.resume() } } }

  /// The async form of ``flush(completionHandler:)``.
  public func flush() async { await withCheckedContinuation { continuation in flush { continuation.resume() } } }
}
