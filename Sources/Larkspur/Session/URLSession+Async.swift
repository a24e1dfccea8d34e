import Foundation

/// Each of these runs its task on the session's loop: one hop there and one back, and none for a caller who is there already
/// (``taskExecutor``). To cancel the caller's task cancels the load, which then throws `URLError.cancelled`.
extension URLSession {
  /// The loop that carries out the session's tasks, as an executor for Swift tasks that prefer it: to await a load costs
  /// them no switch between threads. Child tasks inherit the preference.
  ///
  /// ```swift
  /// let data = try await withTaskExecutorPreference(session.taskExecutor) {
  ///   try await session.data(from: url).0
  /// }
  /// ```
  ///
  /// A loop is one thread, which other sessions share: what runs there must not block, and should not compute for long. All
  /// of these sessions' loads wait meanwhile, and one that is waited for by blocking never comes. What is isolated to an
  /// actor goes on there, as it does with any other executor.
  ///
  /// The same value as long as the session takes new tasks, and valid for as long as the process runs. Nil, which prefers
  /// nothing: the session has been invalidated, or the system has no descriptors for a loop.
  public var taskExecutor: (any TaskExecutor)? { try? core.engine()?.loop }

  /// Loads a request into memory.
  ///
  /// The delegate is for challenges, redirections and metrics, and asked before the session's.
  public func data(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let transfer = try core.transfer(for: request, self, delegate)
    try await core.run(transfer)
    return try transfer.takeData()
  }

  /// Loads a URL into memory.
  public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) {
    let transfer = try core.transfer(for: URLRequest(url: url), self, delegate)
    try await core.run(transfer)
    return try transfer.takeData()
  }

  /// Sends a file as the request's body.
  public func upload(
    for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let transfer = try core.transfer(
      of: URLSessionUploadTask(core, request: request, source: .file(fileURL), output: .dataResult), self, delegate)
    try await core.run(transfer)
    return try transfer.takeData()
  }

  /// Sends data as the request's body.
  public func upload(
    for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let transfer = try core.transfer(
      of: URLSessionUploadTask(core, request: request, source: .data(bodyData), output: .dataResult), self, delegate)
    try await core.run(transfer)
    return try transfer.takeData()
  }

  /// As ``uploadTask(withResumeData:)``: throws `URLError.unsupportedURL` in this version.
  public func upload(
    resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) {
    let transfer = try core.transfer(of: ResumedUploadTask(core, request: nil, output: .dataResult), self, delegate)
    try await core.run(transfer)
    return try transfer.takeData()
  }

  /// Loads a request into a file in the temporary directory, which is the caller's from then on.
  public func download(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (URL, URLResponse) {
    let transfer = try core.transfer(
      of: URLSessionDownloadTask(core, request: request, output: .fileResult), self, delegate)
    try await core.run(transfer)
    return try transfer.takeFile()
  }

  /// Loads a URL into a file in the temporary directory, which is the caller's from then on.
  public func download(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (URL, URLResponse)
  {
    try await download(for: URLRequest(url: url), delegate: delegate)
  }

  /// Goes on with a download that has been cancelled or has failed, as ``downloadTask(withResumeData:)`` does. The file is
  /// the caller's from then on. What it throws has the data to go on from again, if it can: `downloadTaskResumeData`.
  public func download(
    resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (URL, URLResponse) {
    let transfer = try core.transfer(
      of: URLSessionDownloadTask(core, resumeData: resumeData, output: .fileResult), self, delegate)
    try await core.run(transfer)
    return try transfer.takeFile()
  }

  /// Loads a request, and returns when the head of the response is there; the body is read as it is asked for.
  @_disfavoredOverload
  public func bytes(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (AsyncBytes, URLResponse) {
    let channel = BytesChannel()
    let task = URLSessionDataTask(core, request: request, output: .bytes(channel))
    let bytes = AsyncBytes(channel, of: task)
    task.delegate = delegate
    core.register(task, self)
    task.resume()
    let answer = await withTaskCancellationHandler {
      await channel.response.wait()
    } onCancel: {
      task.cancel()
    }
    guard let answer else { throw URLError(.cancelled) }
    return (bytes, try answer.get())
  }

  /// Loads a URL, and returns when the head of the response is there; the body is read as it is asked for.
  @_disfavoredOverload
  public func bytes(
    from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (AsyncBytes, URLResponse) {
    try await bytes(for: URLRequest(url: url), delegate: delegate)
  }

  // MARK: - Without a delegate

  // Darwin has these four beside those above: a program's protocol that asks for one is fulfilled by a session.

  /// Loads a request into memory.
  @_disfavoredOverload
  public func data(for request: URLRequest) async throws -> (Data, URLResponse) {
    try await data(for: request, delegate: nil)
  }

  /// Loads a URL into memory.
  @_disfavoredOverload
  public func data(from url: URL) async throws -> (Data, URLResponse) { try await data(from: url, delegate: nil) }

  /// Sends a file as the request's body.
  @_disfavoredOverload
  public func upload(for request: URLRequest, fromFile fileURL: URL) async throws -> (Data, URLResponse) {
    try await upload(for: request, fromFile: fileURL, delegate: nil)
  }

  /// Sends data as the request's body.
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

  /// See ``reset(completionHandler:)``.
  public func reset() async { await withCheckedContinuation { continuation in reset { continuation.resume() } } }

  /// See ``flush(completionHandler:)``.
  public func flush() async { await withCheckedContinuation { continuation in flush { continuation.resume() } } }
}
