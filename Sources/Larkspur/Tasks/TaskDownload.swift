import Foundation
import LarkspurBytes
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
  /// Where the present body ends in the file, in bytes, if the response's head or its version says it.
  var end: Int?
  /// How often a server has sent less than it was asked for.
  var shortAnswers = 0
}

/// A load's download: its file, and how it continues another download or may be continued. It belongs to the loop.
final class TaskDownload {
  /// A server may send less than it is asked for (RFC 9110 15.3.7), and is asked again, this often: one that sends a
  /// byte at a time would otherwise be asked for ever.
  static let shortAnswersMax = 100

  private unowned let transfer: Transfer
  /// The file, while it is written, and then while its owner may move it.
  private(set) var file: DownloadFile?
  /// Whether the delegate has had the file: from then on the task has succeeded.
  private(set) var hasGivenFile = false
  private var partial: PartialDownload?
  /// The place of the file, or `nil` if the file lies in the temporary directory.
  private let place: DownloadPlace?

  private var partialFiles: PartialFiles { .standard }

  init(of transfer: Transfer, at place: DownloadPlace? = nil) {
    self.transfer = transfer
    self.place = place
    guard let place, let start = place.start, let part = place.openStart() else { return }
    partial = PartialDownload(asked: start.firstAsked, point: start)
    file = DownloadFile(URL(fileURLWithPath: place.path), continuing: part, isOurs: false)
  }

  @discardableResult func takeFile() -> DownloadFile? { file.take() }

  // MARK: - Before the request

  /// Finds what the download continues from.
  func resume(from decodedResumeData: DecodedResumeData) throws(URLError) {
    switch decodedResumeData {
    case .refused(let refusal): throw URLError(refusal)
    case .point(let data, let encoded):
      // Without its file the download starts anew: the program wants the resource in any case.
      guard let file = partialFiles.open(data) else { return }
      partial = PartialDownload(
        resume: data, encoded: encoded, file: file, asked: data.point.firstAsked, point: data.point)
    }
  }

  /// The fields that request the rest.
  var conditions: FieldList {
    guard let partial, let first = partial.asked, let point = partial.point else { return [] }
    var fields = ResumePoint.conditions(from: first, validator: point.validator)
    // A range counts encoded bytes: the rest has to come as the first bytes did.
    if RequestComposer.decodes(transfer.machine.request) {
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
    let fields = response.fields
    switch point.decide(asking: first, status: response.statusCode, fields: { fields.values(of: $0) }) {
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

  /// Opens the file for the content of a response: the one that is continued, or a new one.
  func openFile(for response: URLResponse) async throws(URLError) {
    if let partial, partial.asked != nil, let point = partial.point, file != nil {
      return await resumed(at: point.offset, of: point.total, isFirst: partial.shortAnswers == 0)
    }
    let count = try countOfWhole(response)
    let end = partial?.end ?? count
    if let place { file = try await place.replace() } else { file = try DownloadFile() }
    partial?.point = nil
    partial?.end = nil
    // There may have been a part, of another version.
    transfer.task.show { $0.bytesReceived = 0 }
    guard let response = response as? HTTPURLResponse, !response.isDecoded else { return }
    let fields = response.fields
    let point = ResumePoint(
      status: response.statusCode, now: Date().timeIntervalSince1970, fields: { fields.values(of: $0) })
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
  private func countOfWhole(_ response: URLResponse) throws(URLError) -> Int? {
    // RFC 9110 14.2: ranges are defined for GET only.
    guard let response = response as? HTTPURLResponse, [200, 203, 206].contains(response.statusCode),
      transfer.machine.request.own.method == "GET"
    else { return nil }
    // A range that the program asks for, in the request or for the session, is the program's affair.
    var asked = transfer.machine.request
    transfer.core.composer.complete(&asked, hasLeftOrigin: transfer.machine.hasLeftOrigin)
    guard asked.value(forHTTPHeaderField: "Range") == nil else { return nil }
    let fields = response.fields
    switch BodyExtent({ fields.values(of: $0) }) {
    // A 206 that does not say which part it is may be any.
    case .whole(let count) where count != nil || response.statusCode != 206: return count
    case .unclear where response.statusCode != 206: return nil
    case .whole, .unclear, .part:
      throw URLError.make(
        .badServerResponse, "the server sends a part of the resource in place of the whole, or contradicts itself",
        url: response.url)
    }
  }

  private func resumed(at offset: Int, of total: Int?, isFirst: Bool) async {
    let expected = total.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
    transfer.task.show {
      $0.bytesReceived = Int64(offset)
      $0.bytesExpectedToReceive = expected
    }
    transfer.task.updateProgress()
    guard isFirst, case .delegate = transfer.output, let task = transfer.task as? URLSessionDownloadTask else { return }
    await transfer.calls.notify { session, delegate in
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(
        session, downloadTask: task, didResumeAtOffset: Int64(offset), expectedTotalBytes: expected)
      return true
    }
  }

  // MARK: - The end

  /// Whether more has to be requested, because the body that has come was not the last part.
  func wantsAnotherPart() throws(URLError) -> Bool {
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
  func nameFile() throws(URLError) {
    if case .fileResult = transfer.output { try file?.name(stays: true) } else { try file?.name(stays: false) }
  }

  /// Gives the file to the delegate, which moves it, or loses it when the call returns.
  func giveFile() async {
    guard case .delegate = transfer.output, let url = file?.url, let task = transfer.task as? URLSessionDownloadTask
    else { return }
    hasGivenFile = true
    await transfer.calls.notify { session, delegate in
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(session, downloadTask: task, didFinishDownloadingTo: url)
      return true
    }
    file = nil
  }

  /// Returns what a later download can continue from after this one has failed, and keeps the file for it.
  func resumeData(after failure: URLError) -> Data? {
    if let place {
      place.point = partial?.point
      return nil
    }
    // A program that cancels without asking for resume data does not need the file.
    if failure.code == .cancelled {
      guard let task = transfer.task as? URLSessionDownloadTask, task.wantsResumeData else { return nil }
    }
    guard let partial else { return nil }
    // The partial file is untouched.
    if partial.resume != nil { return partial.encoded }
    guard !failure.isOfFullDisk, let file, var point = partial.point,
      let request = transfer.task.originalRequest, let count = try? file.file.byteCount(), count > 0
    else { return nil }
    if let total = point.total, count > total { return nil }
    point.offset = count
    return partialFiles.keep(file, of: request, at: point)
  }
}
