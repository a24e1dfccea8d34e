import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// A server of resumable uploads at `/files`, a file, and sessions that do not wait long between their tries.
final class UploadSetting: Sendable {
  let server: TestServer
  let uploads: TestServer.Uploads
  let directory: TemporaryDirectory
  let bytes: [UInt8]
  let file: URL

  init(count: Int, _ upload: TestServer.ResumableUpload = TestServer.ResumableUpload()) throws {
    server = try TestServer()
    uploads = server.resumableUploads("/files", upload)
    directory = try TemporaryDirectory()
    bytes = TestServer.content(count: count)
    file = directory.url.appending(path: "file")
    try Data(bytes).write(to: file)
    // A change during the test has another time.
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: file.path)
  }

  func configuration(
    _ draft: URLSessionConfiguration.ResumableUploadDraft = .draft11, failuresMax: Int? = 4
  ) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.resumableUploadDraft = draft
    var retry = UploadRetry()
    retry.firstDelay = .milliseconds(1)
    retry.failuresMax = failuresMax
    configuration.uploadRetry = retry
    return configuration
  }

  func session(
    _ draft: URLSessionConfiguration.ResumableUploadDraft = .draft11, failuresMax: Int? = 4,
    delegate: (any URLSessionDelegate)? = nil
  ) -> URLSession {
    URLSession(
      configuration: configuration(draft, failuresMax: failuresMax), delegate: delegate, delegateQueue: nil)
  }

  func request(_ path: String = "/files", method: String = "POST") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: server.url(path))))
    request.httpMethod = method
    request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
    return request
  }

  /// Expects that the server has one upload, which is the file.
  func expectWhole(_ location: SourceLocation = #_sourceLocation) {
    let all = uploads.all
    #expect(all.count == 1 && all.last?.isComplete == true, sourceLocation: location)
    #expect(all.last?.bytes == bytes, sourceLocation: location)
  }

  /// Changes the file without changing its size.
  func changeFile() throws {
    let handle = try FileHandle(forUpdating: file)
    try handle.seek(toOffset: UInt64(bytes.count / 2))
    try handle.write(contentsOf: Data("changed".utf8.prefix(min(bytes.count / 2, 7))))
    try handle.close()
  }

  var methods: [String] { server.requests.map(\.method) }

  /// Uploads the file in a session that does not try again.
  ///
  /// - Returns: The error.
  func broken(
    _ draft: URLSessionConfiguration.ResumableUploadDraft = .draft11, _ request: URLRequest? = nil
  ) async throws -> URLError {
    let session = session(draft, failuresMax: 1)
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) {
      _ = try await session.upload(for: request ?? self.request(), fromFile: file)
    }
    return try #require(error)
  }
}

/// A delegate that records interim responses, the numbers of sent bytes, and the end.
final class UploadWatcher: NSObject, URLSessionDataDelegate {
  struct Record: Sendable {
    var interim: [HTTPURLResponse] = []
    var sent: [UploadRecorder.Sent] = []
    var failure: URLError?
    var challenges = 0
  }

  let record = Mutex(Record())
  private let end = TestServer.Signal()

  func waitForEnd() async throws { try await end.wait() }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
  ) {
    record.withLock { $0.interim.append(response) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    let sent = UploadRecorder.Sent(bytes: bytesSent, total: totalBytesSent, expected: totalBytesExpectedToSend)
    record.withLock { $0.sent.append(sent) }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    record.withLock { $0.failure = error as? URLError }
    end.fire()
  }
}
