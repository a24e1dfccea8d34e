import Foundation

/// Loads a URL into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
  /// What it goes on from. Nil: it begins at the beginning.
  private let resumption: Resumption?

  /// A task of nobody's, which loads nothing: for subclasses in tests.
  public override init() {
    resumption = nil
    super.init()
  }

  override init(_ core: SessionCore, request: URLRequest?, source: BodySource = .request, output: TaskOutput) {
    resumption = nil
    super.init(core, request: request, source: source, output: output)
  }

  init(_ core: SessionCore, resumeData: Data, output: TaskOutput) {
    let resumption = Resumption(resumeData, .standard)
    self.resumption = resumption
    super.init(core, request: resumption.request, output: output)
  }

  override var isIncremental: Bool { false }

  override func prepare(_ transfer: Transfer) throws(URLError) {
    let download = TaskDownload(of: transfer)
    transfer.download = download
    if let resumption { try download.resume(from: resumption) }
  }

  /// Cancels the download so that it can go on later, with ``URLSession/downloadTask(withResumeData:)``.
  ///
  /// A download can go on if it is a GET over HTTP without a body and conditions of its own, and the server has said which
  /// version of the resource it sends: by a strong entity tag, or else by a date that can stand for one (RFC 9110 13.1.5).
  /// What has come is kept for a week in a folder of this user's beneath the temporary directory. The data holds the
  /// request's own fields, `Authorization` among them: guard it as well as the request.
  ///
  /// - Parameter completionHandler: Given nil if it cannot go on, or if nothing has come yet. Called once, on the delegate
  ///   queue, before the task's last call.
  open func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
    let handler = ResumeDataHandler(completionHandler)
    guard let core else { return handler.call(nil) }
    let isOver = read { details -> Bool in
      // Those that were there when it ended are told by its end.
      if details.state != .completed { details.resumeDataHandlers.append(handler) }
      return details.state == .completed
    }
    if isOver { core.delegateQueue.insist { handler.call(nil) } } else { cancel() }
  }

  /// See ``cancel(byProducingResumeData:)``.
  public final func cancelByProducingResumeData() async -> Data? {
    await withCheckedContinuation { continuation in
      cancel(byProducingResumeData: { continuation.resume(returning: $0) })
    }
  }

  var wantsResumeData: Bool { read { !$0.resumeDataHandlers.isEmpty } }

  func takeResumeDataHandlers() -> [ResumeDataHandler] {
    read { details in
      defer { details.resumeDataHandlers = [] }
      return details.resumeDataHandlers
    }
  }
}

/// A handler that is called once, on the delegate queue.
struct ResumeDataHandler: @unchecked Sendable {
  private let handler: (Data?) -> Void

  init(_ handler: @escaping (Data?) -> Void) { self.handler = handler }

  func call(_ data: Data?) { handler(data) }
}
