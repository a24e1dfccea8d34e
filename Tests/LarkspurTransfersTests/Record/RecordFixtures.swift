import LarkspurBytes
import LarkspurHTTP
import LarkspurTransfers

enum Fixture {
  static let session = "com.example.app.downloads"

  /// A record without optional parts.
  static func plain(
    task: Int = 1, _ url: String = "https://example.com/a", session: String = session
  ) -> TransferRecord {
    TransferRecord(
      task: task, session: session, kind: .download, request: TransferRequest(url: url), createdSeconds: 1_000_000)
  }

  /// A download that has every part that a download can have.
  static func fullDownload(task: Int = 7) -> TransferRecord {
    var request = TransferRequest(url: "https://example.com/größe?x=1", method: "POST")
    request.fields = [
      Field("Authorization", "Bearer secret"), Field("X-Empty", ""),
    ]
    request.body = [0, 1, 255]
    request.mainDocument = "https://example.com/"
    request.cookiePartition = "example.com"
    request.timeoutSeconds = .infinity
    request.cachePolicy = 1
    request.networkServiceType = 3
    request.flags = 0xffff_ffff
    var record = TransferRecord(
      task: task, session: session, kind: .download, request: request, createdSeconds: 1_700_000_000.25)
    record.state = .completed
    record.taskDescription = "a description\nof two lines \u{1F600}"
    record.currentRequest = TransferRequest(url: "https://cdn.example.com/b")
    record.redirects = ["https://example.com/1", "https://cdn.example.com/b"]
    record.cookies = [4, 0, 255]
    record.hasContentFile = true
    record.resumePoint = ResumePoint(validator: "\"v1\"", offset: 12, total: 34, coding: "gzip")
    record.counts.sent = 3
    record.counts.received = 12
    record.counts.expectedToSend = 3
    record.counts.expectedToReceive = .max
    record.counts.clientExpectsToSend = 1
    record.counts.clientExpectsToReceive = 2
    record.response = TransferResponse(
      url: "https://cdn.example.com/b", status: 206, version: "HTTP/1.1",
      fields: [Field("Content-Type", "text/plain")], isDecoded: true)
    record.failure = TransferRecord.Failure(domain: "NSURLErrorDomain", code: -1005, message: "lost")
    record.underlyingFailure = TransferRecord.Failure(domain: "NSPOSIXErrorDomain", code: 104, message: "reset")
    record.earliestBeginSeconds = 1_700_000_100
    record.nextAttemptSeconds = 1_700_000_200.5
    record.suspendedSeconds = 1_700_000_050
    record.pausedSeconds = 12.5
    record.clock = TransferRecord.Clock(boot: .max, startSeconds: 1_699_000_000.5)
    record.failedAttempts = 3
    record.isDiscretionary = true
    record.priority = 1
    record.events = [.resumed(offset: 5, expected: -1), .downloaded, .completed]
    return record
  }

  static let uploadFile = TransferRecord.UploadFile(
    path: "/home/me/file",
    identity: FileStatus(
      size: .max, modificationSeconds: -3, modificationNanoseconds: 999_999_999, inode: .max))

  static func upload(task: Int = 8) -> TransferRecord {
    var record = TransferRecord(
      task: task, session: session, kind: .upload,
      request: TransferRequest(url: "https://example.com/u", method: "PUT"),
      uploadFile: uploadFile,
      createdSeconds: 0)
    record.uploadPoint = [1, 2, 3]
    return record
  }

  static var all: [TransferRecord] { [plain(), fullDownload(), upload()] }
}
