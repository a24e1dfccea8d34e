import Dispatch
import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers

/// A task of a background session in its runner: the record, and the current attempt. Belongs to the runner's queue.
final class TransferAttempt {
  var machine: TransferAttemptMachine { didSet { updateLoad() } }
  var record: TransferRecord { machine.record }
  /// The task of the inner session, or `nil` between two attempts.
  var inner: URLSessionTask?
  private let traffic: TransferTraffic
  /// Whether the journal has the record. If not, an earlier one may be there.
  var isWritten = true
  /// Makes discretionary transfers yield to this one while it is carried out.
  private var load: TransferTraffic.Load?
  var pace = TransferPace()
  /// Whether a discretionary transfer pauses in favor of others.
  var isPaused = false
  /// The number of pauses so far.
  var pauses = 0
  var place: DownloadPlace?
  /// The content of an upload's response.
  var content = Data()
  /// The request after the redirects of the current attempt. Another attempt begins with the task's first request.
  var lastRequest: TransferRequest?
  /// Whether to report to the program that the download continues an earlier task's.
  var reportsResumption = false
  var timer: (any DispatchSourceTimer)?
  /// The time of the next notice of progress, in nanoseconds since the machine's start.
  var nextProgress: UInt64 = 0
  /// Whether a notice of progress comes soon.
  var isProgressDue = false
  /// Whether a checkpoint comes soon.
  var isCheckpointDue = false

  init(_ machine: TransferAttemptMachine, _ traffic: TransferTraffic) {
    self.machine = machine
    self.traffic = traffic
  }

  /// Whether the task is being loaded, and not suspended.
  var isLoading: Bool { machine.isLoading }

  private func updateLoad() {
    let isLoad = isLoading && !record.isDiscretionary
    if isLoad != (load != nil) { load = isLoad ? traffic.add() : nil }
  }

  func apply(_ event: TransferTask.Event) { machine.task.apply(event) }

  func readCounts(of inner: URLSessionTask) {
    let shown = inner.read { $0.shown }
    var counts = record.counts
    counts.sent = shown.bytesSent
    counts.received = shown.bytesReceived
    counts.expectedToSend = max(shown.bytesExpectedToSend, -1)
    counts.expectedToReceive = max(shown.bytesExpectedToReceive, -1)
    apply(.progressed(counts))
  }
}

/// The delegate of a runner's inner session. All calls come on the runner's queue.
final class AttemptHandler: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, @unchecked Sendable {
  /// The key of the wait in seconds, in the `userInfo` of the error of a response that asks to come back later.
  static let delayKey = "LarkspurTransferDelay"

  weak var runner: TransferRunner?
  /// Called when the session is over.
  var whenOver: (() -> Void)?

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { whenOver.take()?() }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    runner?.progressed(downloadTask)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    runner?.resumed(downloadTask, at: fileOffset, expecting: expectedTotalBytes)
  }

  /// The file stays in its place.
  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    runner?.progressed(task)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    runner?.received(data, of: dataTask)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    let answer = task.indifferentAnswer(to: request)
    if answer != nil { runner?.redirected(task, to: request) }
    completionHandler(answer)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard let runner else { return completionHandler(.cancelAuthenticationChallenge, nil) }
    runner.challenged(task, challenge, completionHandler)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    runner?.completed(task, error)
  }
}

extension TransferRecord.UploadFile {
  /// The file at a path as it is now, or `nil` if there is no regular file that can be read.
  init?(atPath path: String) {
    guard let status = try? OpenFile(readingRegular: path).status() else { return nil }
    self.init(path: path, identity: status)
  }
}

extension URLSessionConfiguration {
  /// The configuration of the session that carries out a background session's tasks.
  var ofAttempts: URLSessionConfiguration {
    var storage = storage
    storage.identifier = nil
    storage.cache = nil
    storage.settings.waitsForConnectivity = true
    storage.protocolClasses = []
    storage.settings.timeoutIntervalForResource = .infinity
    // The session that loads the attempts is not a background session itself.
    if storage.uploadRetry == nil {
      var retry = UploadRetry()
      retry.failuresMax = nil
      storage.uploadRetry = retry
    }
    if storage.settings.isDiscretionary { storage.settings.networkServiceType = .background }
    return URLSessionConfiguration(storage: storage)
  }
}

/// A download task whose file stays in a given place, whatever becomes of the task.
final class KeptDownloadTask: URLSessionDownloadTask, @unchecked Sendable {
  private let place: DownloadPlace

  init(_ core: SessionCore, request: URLRequest, at place: DownloadPlace) {
    self.place = place
    super.init(core, request: request, output: .delegate)
  }

  override func makeDownload() -> TaskDownload { TaskDownload(at: place) }
}
