import Foundation
import Larkspur
import LarkspurConsole
import LarkspurTestServer

extension DemoPart {
  /// A download that is cancelled halfway and then resumed. The file has to be complete in the end.
  static let resumedDownload = DemoPart("A download, cancelled at 40 % and resumed") { stage in
    let count = 16 << 20
    let cut = count * 2 / 5
    let cancelled = TestServer.Signal()
    stage.serveHeldBack("/album", count: count, cut: cut, until: cancelled)

    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let watcher = DownloadWatcher(untilBytes: Int64(cut))
    let task = session.downloadTask(with: try stage.url("/album"))
    task.delegate = watcher
    task.resume()
    stage.say("GET /album (\(Format.bytes(count)))")
    try await watcher.reached.wait()
    guard let data = await task.cancelByProducingResumeData() else {
      throw DemoFailure("there is no resume data: \(task.error.map { "\($0)" } ?? "no error")")
    }
    cancelled.fire()
    stage.say("cancelled at \(Format.bytes(Int(task.countOfBytesReceived))); \(data.count) bytes of resume data")

    let (file, response) = try await session.download(resumeFrom: data)
    defer { try? FileManager.default.removeItem(at: file) }
    let range = stage.server.requests.last?.fields["Range"] ?? "(missing)"
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    stage.say("GET /album, Range: \(range): \(status)")
    let checksum = try checksum(of: file)
    let expected = TestServer.contentChecksum(count: count)
    stage.say("CRC-32 of the file: \(checksum), of what the server has: \(expected)")
    try DemoFailure.unless(range == "bytes=\(cut)-", "the range begins elsewhere: \(range)")
    try DemoFailure.unless(status == 206, "the status is \(status)")
    try DemoFailure.unless(checksum == expected, "the checksums differ")
    return "went on at \(Format.bytes(cut)), checksum \(checksum) is right"
  }

  static func checksum(of file: URL) throws -> TestServer.Checksum {
    var checksum = TestServer.Checksum()
    let handle = try FileHandle(forReadingFrom: file)
    while let piece = try handle.read(upToCount: 1 << 16), !piece.isEmpty { checksum.update(Array(piece)) }
    return checksum
  }
}

/// A delegate that fires a signal when enough bytes have arrived, or when the task is complete.
private final class DownloadWatcher: NSObject, URLSessionDownloadDelegate, Sendable {
  let reached = TestServer.Signal()
  private let bytes: Int64

  init(untilBytes bytes: Int64) { self.bytes = bytes }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    if totalBytesWritten >= bytes { reached.fire() }
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {}

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    reached.fire()
  }
}
