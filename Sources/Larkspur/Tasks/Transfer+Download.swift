import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// How a download stands to the one that it goes on from, and to one that may go on from it.
final class DownloadState {
  /// What it goes on from, as long as that is untouched.
  var resume: ResumeData?
  /// The same, as the program gave it.
  var encoded: Data?
  /// The part's file.
  var part: OpenFile?
  /// The first byte that is asked for. Nil: the whole is.
  var asked: Int?
  /// From which version the bytes in the task's file are. Nil: the download cannot go on from them.
  var point: ResumePoint?
  /// Where the body that comes now ends in the file, in bytes, if the response's head or its version says it.
  var end: Int?
  /// How often a server has sent less than it was asked for.
  var shortAnswers = 0
}

/// Downloads that go on, and that may.
extension Transfer {
  /// A server may send less than it is asked for (RFC 9110 15.3.7), and is asked again. One that sends a byte at a time
  /// would keep us asking for ever.
  static let shortAnswersMax = 100

  private var partialFiles: PartialFiles { .standard }

  // MARK: - Before the request

  /// Finds what the task is to go on from.
  func goOn(from resumption: Resumption) throws(URLError) {
    switch resumption {
    case .refused(let refusal): throw URLError(refusal)
    case .point(let data, let encoded):
      // Without its file the download begins again: its program wants the resource, and how is our affair.
      guard let part = partialFiles.open(data) else { return }
      let download = DownloadState()
      download.resume = data
      download.encoded = encoded
      download.part = part
      download.asked = data.point.firstAsked
      download.point = data.point
      self.download = download
    }
  }

  /// The fields that ask for the rest.
  var downloadConditions: [(name: String, value: String)] {
    guard let download, let first = download.asked, let point = download.point else { return [] }
    var fields = ResumePoint.conditions(from: first, validator: point.validator)
    // A range counts encoded bytes: the rest has to come as the first bytes did.
    if RequestComposer.decodes(machine.request) { fields.append((name: "Accept-Encoding", value: "identity")) }
    return fields
  }

  // MARK: - The answer's head

  /// Decides what a response to a request for the rest means. False: another request has to be made.
  func admits(_ response: HTTPURLResponse) throws(URLError) -> Bool {
    guard let download, let first = download.asked, let point = download.point else { return true }
    download.end = nil
    let fields = response.fields
    switch point.decide(asking: first, status: response.statusCode, fields: { fields.values(of: $0) }) {
    case .continueAt(let offset, let end, let total):
      guard try takePart(at: offset) else {
        startOver()
        return false
      }
      download.point?.offset = offset
      download.point?.total = total
      download.end = end
      return true
    case .replace(let count):
      startOver()
      let whole = DownloadState()
      whole.end = count
      self.download = whole
      return true
    case .startOver:
      startOver()
      return false
    case .confirmLast:
      download.point?.total = point.offset
      download.asked = point.offset - 1
      return false
    case .deliver:
      // An error's words are no part of the resource. What is there stays, for another try with the same data.
      download.asked = nil
      download.point = nil
      download.part = nil
      file = nil
      return true
    }
  }

  /// Forgets what there is.
  private func startOver() {
    if let resume = download?.resume { partialFiles.remove(resume) }
    download = nil
    file = nil
  }

  /// Makes the partial file the task's own. False: somebody else has it.
  private func takePart(at offset: Int) throws(URLError) -> Bool {
    if let download, let part = download.part, let resume = download.resume {
      let url = DownloadFile.freshURL()
      guard partialFiles.giveOut(resume, to: url) else { return false }
      file = DownloadFile(url, continuing: part)
      download.part = nil
      download.resume = nil
      download.encoded = nil
    }
    guard let file, try file.count() >= offset else { return false }
    try file.cut(toBytes: offset)
    return true
  }

  /// The file for the body of the response: the one that goes on, or a new one.
  func openFile(for response: URLResponse) async throws(URLError) {
    if let download, download.asked != nil, let point = download.point, file != nil {
      return await goOn(at: point.offset, of: point.total, isFirst: download.shortAnswers == 0)
    }
    let count = try countOfWhole(response)
    let end = download?.end ?? count
    file = try DownloadFile()
    download?.point = nil
    download?.end = nil
    // There may have been a part, of another version.
    task.show { $0.bytesReceived = 0 }
    guard let response = response as? HTTPURLResponse, !response.isDecoded else { return }
    let fields = response.fields
    let point = ResumePoint(
      status: response.statusCode, now: Date().timeIntervalSince1970, fields: { fields.values(of: $0) })
    guard point != nil || end != nil else { return }
    let state = download ?? DownloadState()
    state.point = point
    state.end = end
    download = state
  }

  /// Refuses a response that has a part of the resource only, or contradicts itself about it, to a request for the whole.
  ///
  /// - Returns: How many bytes the whole has, if the response has a `Content-Range` that says it.
  private func countOfWhole(_ response: URLResponse) throws(URLError) -> Int? {
    // RFC 9110 14.2: ranges are defined for GET only.
    guard let response = response as? HTTPURLResponse, [200, 203, 206].contains(response.statusCode),
      machine.request.own.method == "GET"
    else { return nil }
    // A range that the program asks for, in the request or for the session, is the program's affair.
    var asked = machine.request
    core.composer.complete(&asked, isElsewhere: machine.isElsewhere)
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

  private func goOn(at offset: Int, of total: Int?, isFirst: Bool) async {
    let expected = total.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
    task.show {
      $0.bytesReceived = Int64(offset)
      $0.bytesExpectedToReceive = expected
    }
    task.updateProgress()
    guard isFirst, case .delegate = output, let downloadTask = task as? URLSessionDownloadTask else { return }
    await tell { session, delegate in
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(
        session, downloadTask: downloadTask, didResumeAtOffset: Int64(offset), expectedTotalBytes: expected)
      return true
    }
  }

  // MARK: - The end

  /// Whether more has to be asked for: the body that has come was not the last part.
  func wantsAnotherPart() throws(URLError) -> Bool {
    guard let download, let end = download.end, let file else { return false }
    // Where a body's framing does not tell its length, its range does, or its version.
    let count = try file.count()
    guard count == end else {
      if download.asked == nil {
        // The bytes may be any of the resource: no later try goes on from them.
        download.point = nil
      } else if count > end {
        // So may a part with more bytes than its range has. One with less begins where it says.
        try file.cut(toBytes: download.point?.offset ?? 0)
      }
      throw count > end
        ? URLError.make(.badServerResponse, "the server sends more than it says")
        : URLError.make(.networkConnectionLost, "the server sends less than it says")
    }
    // Of a whole whose length is not known only the next answer tells that it is complete.
    guard download.asked != nil, end != download.point?.total else { return false }
    download.shortAnswers += 1
    guard download.shortAnswers <= Self.shortAnswersMax else {
      throw URLError.make(.badServerResponse, "the server sends the rest in too many parts")
    }
    download.end = nil
    download.asked = end
    download.point?.offset = end
    return true
  }

  /// What the download can go on from after it has failed. Its file is kept for that.
  func resumeData(after failure: URLError) -> Data? {
    // Who cancels and does not ask for it does not want the file to stay.
    if failure.code == .cancelled {
      guard let task = task as? URLSessionDownloadTask, task.wantsResumeData else { return nil }
    }
    guard let download else { return nil }
    // Nothing has been taken from it yet.
    if download.resume != nil { return download.encoded }
    // A file that cannot be written is on a disk that is full.
    guard failure.code != .cannotWriteToFile, let file, var point = download.point,
      let request = task.originalRequest, let count = try? file.file.byteCount(), count > 0
    else { return nil }
    if let total = point.total, count > total { return nil }
    point.offset = count
    return partialFiles.keep(file, of: request, at: point)
  }
}
