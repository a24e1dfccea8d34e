import Foundation

/// A task that loads a URL into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
  /// The data from which the download continues. `nil` if it starts at the beginning.
  let decodedResumeData: DecodedResumeData?

  /// Creates a task that belongs to no session and loads nothing. For subclasses in tests.
  public override init() {
    decodedResumeData = nil
    super.init()
  }

  override init(
    _ core: SessionCore, request: URLRequest?, source: BodySource = .request, output: TaskOutput,
    identifier: Int? = nil
  ) {
    decodedResumeData = nil
    super.init(core, request: request, source: source, output: output, identifier: identifier)
  }

  init(_ core: SessionCore, resumeData: Data, output: TaskOutput) {
    let decodedResumeData = DecodedResumeData(resumeData, .standard)
    self.decodedResumeData = decodedResumeData
    super.init(core, request: decodedResumeData.request, output: output)
  }

  override var isIncremental: Bool { false }

  /// Returns the download of a load of this task.
  func makeDownload() -> TaskDownload { TaskDownload() }

  override func prepare(_ load: Load) throws(URLError) {
    let download = makeDownload()
    load.download = download
    if let decodedResumeData { try download.resume(from: decodedResumeData) }
    if let settings = load.core.settings.segmentedDownloads { download.loadInSegments(settings) }
  }

  /// Cancels the download so that it can continue later, with ``URLSession/downloadTask(withResumeData:)``.
  ///
  /// A download can continue if its request is an HTTP GET without a body and without conditions, and the server has
  /// identified the version of the resource: by a strong entity tag, or else by a date that can stand for one (RFC 9110
  /// 13.1.5). The content received so far is kept for a week, in a directory of this user's in the temporary directory.
  /// The directory holds 1,000 files at most; the oldest are removed first. The resume data holds the fields of the
  /// request, including `Authorization`: guard it as well as the request.
  ///
  /// - Parameter completionHandler: Called once, with the resume data, or with `nil` if the download cannot continue or
  ///   has received nothing. Called on the delegate queue, before the task's last call unless the task is complete
  ///   already. A task that belongs to no session calls it at once.
  open func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
    cancel(thenCalling: ResumeDataHandler(completionHandler))
  }

  /// See ``cancel(byProducingResumeData:)``.
  public final func cancelByProducingResumeData() async -> Data? {
    await withCheckedContinuation { continuation in
      cancel(byProducingResumeData: { continuation.resume(returning: $0) })
    }
  }
}

/// A completion handler for resume data, called once.
struct ResumeDataHandler: @unchecked Sendable {
  private let handler: (Data?) -> Void

  init(_ handler: @escaping (Data?) -> Void) { self.handler = handler }

  func call(_ data: Data?) { handler(data) }
}
