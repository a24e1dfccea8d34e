import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// What a download has of its resource, and the offset from which it requests more.
private struct PartialDownload {
  /// The data that the download continues from, as long as its file is untouched.
  var resume: ResumeData?
  /// The encoded form of `resume`, as the program gave it.
  var encoded: Data?
  /// The file of `resume`.
  var file: OpenFile?
  /// The first byte that is asked for, or `nil` if the whole is.
  var asked: Int?
  /// The version of the resource that the task's file has bytes of, or `nil` if no later download can continue from
  /// them.
  var point: ResumePoint?
  /// Where the current body ends in the file, in bytes, if the response's head or its version says it.
  var end: Int?
  /// How often a server has sent less than it was asked for.
  var shortAnswers = 0
}

/// A load's download: its file, and how it continues another download or may be continued. It belongs to the loop.
final class TaskDownload {
  /// A server may send less than it is asked for (RFC 9110 15.3.7), and is asked again, this often: one that sends a
  /// byte at a time would otherwise be asked for ever.
  static let shortAnswersMax = 100

  /// The file, while it is written, and then while its owner may move it.
  fileprivate(set) var file: DownloadFile?
  /// Whether the delegate has had the file: from then on the task has succeeded.
  fileprivate(set) var hasGivenFile = false
  private var partial: PartialDownload?
  /// The place of the file, or `nil` if the file lies in the temporary directory.
  private let place: DownloadPlace?

  /// The files of a download in segments, or `nil` if it is loaded by one request at a time.
  struct Segments: Sendable {
    /// The path that the whole file gets.
    var path: String
    var settings: URLSessionSegmentedDownloads
    /// What the disk has of which version, or `nil` if no later download can continue from it.
    var point: ResumePoint?
    /// Whether the engine has used the files. Before that, they belong to the resume data.
    var isBegun = false
  }

  private(set) var segments: Segments?

  private var partialFiles: PartialFiles { .standard }

  init(at place: DownloadPlace? = nil) {
    self.place = place
    guard let place, let start = place.start, let part = place.openStart() else { return }
    partial = PartialDownload(asked: start.firstAsked, point: start)
    file = DownloadFile(URL(fileURLWithPath: place.path), continuing: part, isOurs: false)
  }

  @discardableResult func takeFile() -> DownloadFile? { file.take() }

  // MARK: - In segments

  /// Has the file loaded in segments, unless the download continues one that is not.
  func loadInSegments(_ settings: URLSessionSegmentedDownloads) {
    segments?.settings = settings
    guard segments == nil, partial == nil, let path = place?.path ?? partialFiles.newSegmentsPath() else { return }
    segments = Segments(path: path, settings: settings)
  }

  func beginSegments() { segments?.isBegun = true }

  /// Throws if the content of a response must not come into the file.
  var admit: @Sendable (HTTPURLResponse) throws(URLError) -> Void {
    { [place] (response) throws(URLError) in try place?.check(response) }
  }

  /// Notes what the disk has after the end of a download in segments.
  ///
  /// - Parameter response: A response of the version that the disk has bytes of, or `nil` if there was none.
  func segmentsHaveEnded(keeping state: Download.State, of response: HTTPURLResponse?) {
    guard let response else { return }
    segments?.point = ResumePoint.validator(
      now: Date().timeIntervalSince1970, fields: response.fieldValues
    ).flatMap { validator in
      state.kept > 0 ? ResumePoint(validator: validator, offset: state.kept, total: state.total, coding: nil) : nil
    }
  }

  /// Makes the complete file of the segments the download's file.
  func takeSegments() throws(URLError) {
    guard let segments = segments.take() else { return }
    let url = URL(fileURLWithPath: segments.path)
    do throws(Errno) {
      let open = try OpenFile(updatingRegular: segments.path)
      file = DownloadFile(url, continuing: open, isOurs: place == nil)
    } catch {
      throw URLError.make(.cannotOpenFile, "\(segments.path): \(error)")
    }
  }

  /// Takes the ordinary way: one request for the whole.
  func leaveSegments() { segments = nil }

  /// Starts over with other files, because another download uses these.
  ///
  /// - Returns: `false` if there can be no others.
  func renewSegments() -> Bool {
    guard place == nil, let path = partialFiles.newSegmentsPath() else { return false }
    segments?.path = path
    segments?.point = nil
    return true
  }

  // MARK: - Before the request

  /// Finds what the download continues from.
  func resume(from decodedResumeData: DecodedResumeData) throws(URLError) {
    switch decodedResumeData {
    case .refused(let refusal): throw URLError(refusal)
    case .point(let data, _) where data.isSegmented == true:
      if let path = partialFiles.segmentsPath(of: data) {
        segments = Segments(path: path, settings: URLSessionSegmentedDownloads(), point: data.point)
      }
    case .point(let data, let encoded):
      // Without its file the download starts anew: the program wants the resource in any case.
      guard let file = partialFiles.open(data) else { return }
      partial = PartialDownload(
        resume: data, encoded: encoded, file: file, asked: data.point.firstAsked, point: data.point)
    }
  }

  /// Returns the fields by which a request asks for the rest.
  func conditions(of request: URLRequest) -> FieldList {
    guard let partial, let first = partial.asked, let point = partial.point else { return [] }
    var fields = ResumePoint.conditions(from: first, validator: point.validator)
    // A range counts encoded bytes: the rest has to come as the first bytes did.
    if RequestComposer.decodes(request) {
      fields.append(Field("Accept-Encoding", "identity"))
    }
    return fields
  }

  // MARK: - The response's head

  /// Decides what a response to a request for the rest means.
  ///
  /// - Returns: `false` if another request has to be made.
  func admits(_ response: HTTPURLResponse) throws(URLError) -> Bool {
    try place?.check(response)
    guard let partial, let first = partial.asked, let point = partial.point else { return true }
    self.partial?.end = nil
    switch point.decide(asking: first, status: response.statusCode, fields: response.fieldValues) {
    case .continueAt(let offset, let end, let total):
      guard try takePart(at: offset) else {
        startOver()
        return false
      }
      self.partial?.point?.offset = offset
      self.partial?.point?.total = total
      self.partial?.end = end
      return true
    case .replace(let count):
      startOver()
      self.partial = PartialDownload(end: count)
      return true
    case .startOver:
      startOver()
      return false
    case .confirmLast:
      self.partial?.point?.total = point.offset
      self.partial?.asked = point.offset - 1
      return false
    case .deliver:
      // The content of an error is no part of the resource. The partial file stays, for another try with its data.
      self.partial?.asked = nil
      self.partial?.point = nil
      self.partial?.file = nil
      file = nil
      return true
    }
  }

  /// Prepares another attempt after one that has failed: it asks for the rest if a download can continue from the received
  /// bytes, and for the whole otherwise.
  func repeats() throws(URLError) {
    // The file that the download continues is untouched.
    if partial?.resume != nil { return }
    guard let file, var point = partial?.point else { return startOver() }
    point.offset = try file.count()
    guard point.offset > 0, point.total.map({ point.offset <= $0 }) ?? true else { return startOver() }
    partial?.point = point
    partial?.asked = point.firstAsked
    partial?.end = nil
  }

  /// Drops what the download has.
  private func startOver() {
    if let resume = partial?.resume { partialFiles.remove(resume) }
    partial = nil
    file = nil
  }

  /// Makes the partial file the task's own.
  ///
  /// - Returns: `false` if another download has taken it.
  private func takePart(at offset: Int) throws(URLError) -> Bool {
    if let part = partial?.file, let resume = partial?.resume {
      guard let taken = partialFiles.take(resume, part) else { return false }
      file = taken
      partial?.file = nil
      partial?.resume = nil
      partial?.encoded = nil
    }
    guard let file, try file.count() >= offset else { return false }
    try file.cut(toBytes: offset)
    return true
  }

  /// The file that the content of a response continues, or `nil` if the content needs a new one.
  fileprivate var continued: PartialDownload? {
    guard let partial, partial.asked != nil, partial.point != nil, file != nil else { return nil }
    return partial
  }

  /// Opens a file for the content of a response.
  ///
  /// - Parameter asksForWhole: Whether the program asks for the whole resource.
  fileprivate func openFile(
    for response: URLResponse, asksForWhole: @autoclosure () -> Bool
  ) async throws(URLError) {
    let count = try countOfWhole(response, asksForWhole: asksForWhole())
    let end = partial?.end ?? count
    if let place { file = try await place.replace() } else { file = try DownloadFile() }
    partial?.point = nil
    partial?.end = nil
    guard let response = response as? HTTPURLResponse, !response.isDecoded else { return }
    let point = ResumePoint(
      status: response.statusCode, now: Date().timeIntervalSince1970, fields: response.fieldValues)
    guard point != nil || end != nil else { return }
    if partial == nil { partial = PartialDownload() }
    partial?.point = point
    partial?.end = end
    place?.point = point
  }

  /// Refuses a response that has a part of the resource only, or contradicts itself about it, to a request for the
  /// whole.
  ///
  /// - Returns: How many bytes the whole has, if the response has a `Content-Range` that says it.
  private func countOfWhole(
    _ response: URLResponse, asksForWhole: @autoclosure () -> Bool
  ) throws(URLError) -> Int? {
    guard let response = response as? HTTPURLResponse, asksForWhole() else { return nil }
    switch response.bodyExtent {
    case .whole(let count): return count
    case .part(let range) where range.isWhole: return range.total
    case .nothing, .unclear, .other: return nil
    case .part, .contradiction:
      throw URLError.make(
        .badServerResponse, "the server sends a part of the resource in place of the whole, or contradicts itself",
        url: response.url)
    }
  }

  // MARK: - The end

  /// Whether more has to be requested, because the received body was not the last part.
  func needsAnotherPart() throws(URLError) -> Bool {
    guard let end = partial?.end, let file else { return false }
    // If a body's framing does not state its length, its range does, or its version.
    let count = try file.count()
    guard count == end else {
      if partial?.asked == nil {
        // The bytes may be any of the resource: no later try continues from them.
        partial?.point = nil
      } else if count > end {
        // A part with more bytes than its range cannot be trusted either. A part with fewer bytes begins where its
        // range says.
        try file.cut(toBytes: partial?.point?.offset ?? 0)
      }
      throw count > end
        ? URLError.make(.badServerResponse, "the server sends more than it says")
        : URLError.make(.networkConnectionLost, "the server sends less than it says")
    }
    // If the length of the whole is not known, only the next response shows whether the file is complete.
    guard let partial, partial.asked != nil, end != partial.point?.total else { return false }
    guard partial.shortAnswers < Self.shortAnswersMax else {
      throw URLError.make(.badServerResponse, "the server sends the rest in too many parts")
    }
    self.partial?.shortAnswers += 1
    self.partial?.end = nil
    self.partial?.asked = end
    self.partial?.point?.offset = end
    return true
  }

  /// Gives the complete file the name under which its owner gets it.
  func nameFile(for output: TaskOutput) throws(URLError) {
    if case .fileResult = output { try file?.name(stays: true) } else { try file?.name(stays: false) }
  }

  /// Returns what a later download can continue from after this one has failed, and keeps the file for it.
  func resumeData(of task: URLSessionTask, after failure: URLError) -> Data? {
    if let place {
      place.point = partial?.point
      return nil
    }
    if let segments {
      let isWanted = failure.code != .cancelled || (task as? URLSessionDownloadTask)?.needsResumeData == true
      guard isWanted, let point = segments.point, let request = task.originalRequest,
        let data = partialFiles.keepSegments(at: segments.path, of: request, at: point)
      else {
        if segments.isBegun { partialFiles.removeSegments(at: segments.path) }
        return nil
      }
      return data
    }
    // A program that cancels without asking for resume data does not need the file.
    if failure.code == .cancelled {
      guard let task = task as? URLSessionDownloadTask, task.needsResumeData else { return nil }
    }
    guard let partial else { return nil }
    // The partial file is untouched.
    if partial.resume != nil { return partial.encoded }
    guard !failure.isOfFullDisk, let file, var point = partial.point,
      let request = task.originalRequest, let count = try? file.file.byteCount(), count > 0
    else { return nil }
    if let total = point.total, count > total { return nil }
    point.offset = count
    return partialFiles.keep(file, of: request, at: point)
  }
}

extension Load {
  /// Opens a download's file for the content of a response: the one that is continued, or a new one.
  func openFile(of download: TaskDownload, for response: URLResponse) async throws(URLError) {
    guard let continued = download.continued, let point = continued.point else {
      try await download.openFile(for: response, asksForWhole: asksForWhole)
      // There may have been a part, of another version.
      task.show { $0.bytesReceived = 0 }
      return
    }
    let expected = point.total.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
    task.show {
      $0.bytesReceived = Int64(point.offset)
      $0.bytesExpectedToReceive = expected
    }
    task.updateProgress()
    guard continued.shortAnswers == 0, case .delegate = output, let task = task as? URLSessionDownloadTask else {
      return
    }
    await notifyDelegate { session, delegate in
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(
        session, downloadTask: task, didResumeAtOffset: Int64(point.offset), expectedTotalBytes: expected)
      return true
    }
  }

  /// Whether the program asks for the whole resource. A range that the program asks for, in the request or for the
  /// session, is the program's affair. Ranges are defined for GET only (RFC 9110 14.2).
  private var asksForWhole: Bool {
    var asked = machine.request
    guard asked.own.method == "GET" else { return false }
    core.composer.complete(&asked, hasLeftOrigin: machine.hasLeftOrigin)
    return asked.value(forHTTPHeaderField: "Range") == nil
  }

  /// Gives a download's complete file to the delegate, which moves the file, or loses it when the call returns.
  func giveFile() async {
    guard let download, case .delegate = output, let url = download.file?.url,
      let task = task as? URLSessionDownloadTask
    else { return }
    download.hasGivenFile = true
    await notifyDelegate { session, delegate in
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(session, downloadTask: task, didFinishDownloadingTo: url)
      return true
    }
    download.file = nil
  }
}
