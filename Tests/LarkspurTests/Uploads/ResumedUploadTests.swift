import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Uploads that continue from resume data.
@Suite(.timeLimit(.minutes(1))) struct ResumedUploadTests {
  typealias Draft = URLSessionConfiguration.ResumableUploadDraft
  typealias Server = TestServer.ResumableUpload

  private static let drafts: [Draft] = [.draft01, .draft11, .draft12, .draft13]

  private func cut(_ bytes: Int, count: Int = 100) throws -> UploadSetting {
    var server = Server()
    server.faults = [.cut(afterBytes: bytes)]
    return try UploadSetting(count: count, server)
  }

  private func data(_ setting: UploadSetting, _ draft: Draft = .draft11, _ request: URLRequest? = nil) async throws
    -> Data
  {
    let error = try await setting.broken(draft, request)
    #expect(error.code == .networkConnectionLost)
    return try #require(error.uploadTaskResumeData)
  }

  /// - Returns: The error of a resumed upload.
  private func refusal(_ setting: UploadSetting, _ data: Data) async -> URLError? {
    let session = setting.session()
    defer { session.invalidateAndCancel() }
    return await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
  }

  // MARK: - Resuming

  @Test(arguments: drafts) func anUploadThatBrokeOffContinues(draft: Draft) async throws {
    let setting = try cut(30)
    var request = try setting.request()
    request.setValue("own", forHTTPHeaderField: "X-Own")
    request.timeoutInterval = 47
    let data = try await data(setting, draft, request)
    // The data carries the draft: the session's own does not count.
    let watcher = UploadWatcher()
    let session = setting.session(.none, delegate: watcher)
    let task = session.uploadTask(withResumeData: data)
    #expect(task.originalRequest?.url == request.url && task.originalRequest?.timeoutInterval == 47)
    #expect(task.countOfBytesExpectedToSend == 100)
    task.resume()
    try await watcher.waitForEnd()
    session.finishTasksAndInvalidate()
    #expect(task.error == nil && (task.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(task.countOfBytesSent == 100 && task.currentRequest?.httpMethod == "POST")
    setting.expectWhole()
    let sent = watcher.record.withLock { $0.sent }
    #expect(sent.reduce(0) { $0 + $1.bytes } == 70 && sent.allSatisfy { $0.expected == 100 && $0.total > 30 })
    let requests = setting.server.requests
    #expect(requests.map(\.method) == ["POST", "HEAD", "PATCH"])
    #expect(requests.allSatisfy { $0.fields["X-Own"] == "own" })
  }

  @Test(arguments: drafts) func aCancelledUploadContinues(draft: Draft) async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 4 << 20)]
    let setting = try UploadSetting(count: 8 << 20, server)
    let watcher = UploadWatcher()
    let session = setting.session(draft, delegate: watcher)
    let task = try session.uploadTask(with: setting.request(), fromFile: setting.file)
    let given = Mutex<[Data?]>([])
    task.uploadPointHandler = { [weak task] data in
      if data != nil, given.withLock({ $0.isEmpty }) { task?.cancel { data in given.withLock { $0.append(data) } } }
    }
    task.resume()
    try await watcher.waitForEnd()
    #expect(watcher.record.withLock { $0.failure?.code } == .cancelled)
    // The handler is called before the last call, with the error's data.
    let all = given.withLock { $0 }
    let data = try #require(all.first ?? nil)
    #expect(watcher.record.withLock { $0.failure?.uploadTaskResumeData } == data)
    session.invalidateAndCancel()
    setting.uploads.options.faults = []
    let (_, response) = try await setting.session(draft).upload(resumeFrom: data)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    setting.expectWhole()
  }

  @Test func whatGivesNoData() async throws {
    let setting = try cut(30)
    let session = setting.session()
    defer { session.invalidateAndCancel() }
    // A task that has not begun, and tasks without a server.
    #expect(await URLSessionUploadTask().cancelByProducingResumeData() == nil)
    let unbegun = try session.uploadTask(with: setting.request(), fromFile: setting.file)
    #expect(await unbegun.cancelByProducingResumeData() == nil)
    // A plain cancellation.
    let watcher = UploadWatcher()
    let other = setting.session(delegate: watcher)
    let task = try other.uploadTask(with: setting.request(), fromFile: setting.file)
    task.uploadPointHandler = { [weak task] _ in task?.cancel() }
    task.resume()
    try await watcher.waitForEnd()
    other.invalidateAndCancel()
    let error = watcher.record.withLock { $0.failure }
    #expect(error?.code == .cancelled && error?.uploadTaskResumeData == nil)
  }

  /// An awaited upload calls the handler, too.
  @Test func anAwaitedUploadIsCancelled() async throws {
    let setting = try cut(4 << 20, count: 8 << 20)
    let maker = TaskCanceller()
    let session = setting.session(delegate: maker)
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) {
      _ = try await session.upload(for: setting.request(), fromFile: setting.file)
    }
    #expect(error?.code == .cancelled)
    let data = try await maker.data.get()
    #expect(data != nil && error?.uploadTaskResumeData == data)
  }

  /// Cancels a task at its first interim response.
  private final class TaskCanceller: NSObject, URLSessionDataDelegate {
    final class Box: Sendable {
      let value = Mutex<Data??>(nil)
      let signal = TestServer.Signal()

      func get() async throws -> Data? {
        try await signal.wait()
        return value.withLock { $0 ?? nil }
      }
    }

    let data = Box()

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
      guard let task = task as? URLSessionUploadTask else { return }
      task.uploadPointHandler = { [weak task, data] point in
        guard point != nil, let task, task.state == .running else { return }
        task.cancel { given in
          data.value.withLock { $0 = .some(given) }
          data.signal.fire()
        }
      }
    }
  }

  /// Resume data stays valid if its upload is cancelled before it starts.
  @Test func aResumedUploadIsCancelledAtOnce() async throws {
    let setting = try cut(30)
    let data = try await data(setting)
    let session = setting.session()
    let again = try #require(await session.uploadTask(withResumeData: data).cancelByProducingResumeData())
    session.invalidateAndCancel()
    _ = try await setting.session().upload(resumeFrom: again)
    setting.expectWhole()
    #expect(setting.methods == ["POST", "HEAD", "PATCH"])
  }

  // MARK: - Used twice, damaged, foreign

  @Test(arguments: drafts) func theDataIsUsedTwice(draft: Draft) async throws {
    let setting = try cut(30)
    let data = try await data(setting, draft)
    _ = try await setting.session().upload(resumeFrom: data)
    // The server says that the upload is complete, or repeats its response to an append of nothing.
    let isRepeated = draft == .draft13
    let (_, response) = try await setting.session().upload(resumeFrom: data)
    #expect((response as? HTTPURLResponse)?.statusCode == (isRepeated ? 200 : 204))
    setting.expectWhole()
    #expect(setting.methods == ["POST", "HEAD", "PATCH", "HEAD"] + (isRepeated ? ["PATCH"] : []))
  }

  @Test func damagedData() async throws {
    let setting = try cut(30)
    let data = try await data(setting)
    for index in stride(from: 0, to: data.count, by: 13) {
      var damaged = data
      damaged[damaged.startIndex + index] ^= 1
      #expect(await refusal(setting, damaged)?.code == .unsupportedURL)
    }
    for other in [data.dropLast(), data.prefix(20), Data(), data + data, Data(count: 3 << 20), Data("nonsense".utf8)] {
      let error = await refusal(setting, Data(other))
      #expect(error?.code == .unsupportedURL && error?.uploadTaskResumeData == nil)
    }
    #expect(setting.methods == ["POST"])
    // Undamaged data is still good.
    _ = try await setting.session().upload(resumeFrom: data)
    setting.expectWhole()
  }

  /// The data of a download is none of an upload, and the other way round.
  @Test func dataOfTheOtherKind() async throws {
    let setting = try cut(30)
    let data = try await data(setting)
    let session = setting.session()
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { _ = try await session.download(resumeFrom: data) }
    #expect(error?.code == .unsupportedURL)
  }

  // MARK: - What has changed meanwhile

  @Test(arguments: drafts) func theFileHasChanged(draft: Draft) async throws {
    let setting = try cut(30)
    let data = try await data(setting, draft)
    try setting.changeFile()
    let error = await refusal(setting, data)
    #expect(error?.code == .cannotOpenFile && error?.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST", "DELETE"] && setting.uploads.all.first?.bytes.count == 30)
  }

  @Test func theFileIsAnotherOneWithTheSameBytesAndTime() async throws {
    let setting = try cut(30)
    let data = try await data(setting)
    let copy = setting.directory.url.appending(path: "copy")
    try FileManager.default.copyItem(at: setting.file, to: copy)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: copy.path)
    let kept = setting.directory.url.appending(path: "kept")
    try FileManager.default.moveItem(at: setting.file, to: kept)
    // Without the file the data stays valid.
    let missing = await refusal(setting, data)
    #expect(missing?.code == .fileDoesNotExist && missing?.uploadTaskResumeData != nil)
    try FileManager.default.moveItem(at: copy, to: setting.file)
    #expect(await refusal(setting, data)?.code == .cannotOpenFile)
  }

  @Test(arguments: [404, 410]) func theUploadIsGone(status: Int) async throws {
    let setting = try cut(30)
    let data = try await data(setting)
    setting.uploads.options.faults = [.forget(status: status)]
    let error = await refusal(setting, data)
    #expect(error?.code == .badServerResponse && error?.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST", "HEAD"])
  }

  /// A server that has more than was sent, or less than it said.
  @Test func anOffsetThatCannotBe() async throws {
    for (draft, offset) in [(Draft.draft11, 101), (.draft01, 101)] {
      let setting = try cut(30)
      let data = try await data(setting, draft)
      setting.uploads.options.faults = [.offset(offset)]
      let error = await refusal(setting, data)
      #expect(error?.code == .badServerResponse && error?.uploadTaskResumeData == nil)
      #expect(setting.methods == ["POST", "HEAD", "DELETE"] && setting.uploads.all.first?.bytes.count == 30)
    }
  }

  // MARK: - While it waits, and without an answer

  /// Cancelling ends the wait between two tries, and gives resume data.
  @Test func aCancellationDuringTheWait() async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 30), .status(503, retryAfter: 3000)]
    let setting = try UploadSetting(count: 100, server)
    let session = setting.session()
    let task = try session.uploadTask(with: setting.request(), fromFile: setting.file)
    task.resume()
    _ = try await setting.server.waitForRequests(2)
    let data = try #require(await task.cancelByProducingResumeData())
    session.invalidateAndCancel()
    // The second request may not have taken its fault yet.
    setting.uploads.options.faults = []
    _ = try await setting.session().upload(resumeFrom: data)
    setting.expectWhole()
  }

  @Test func aServerThatDoesNotAnswer() async throws {
    var server = Server()
    server.faults = [.hang]
    let setting = try UploadSetting(count: 100, server)
    var request = try setting.request()
    request.timeoutInterval = 3
    let session = setting.session()
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) {
      _ = try await session.upload(for: request, fromFile: setting.file)
    }
    #expect(error?.code == .timedOut)
    let data = try #require(error?.uploadTaskResumeData)
    let (_, response) = try await session.upload(resumeFrom: data)
    #expect((response as? HTTPURLResponse)?.statusCode == 204)
    setting.expectWhole()
  }

  /// The time without a byte does not count between two tries.
  @Test func theIdleTimeDoesNotCountDuringTheWait() async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 30), .status(503, retryAfter: 4)]
    let setting = try UploadSetting(count: 100, server)
    var request = try setting.request()
    request.timeoutInterval = 3
    let session = setting.session()
    defer { session.invalidateAndCancel() }
    _ = try await session.upload(for: request, fromFile: setting.file)
    setting.expectWhole()
  }

  // MARK: - Another process

  /// A process is killed when the server has named the upload resource, and this one continues.
  @Test func theProcessIsKilled() async throws {
    let setting = try UploadSetting(count: 32 << 20)
    let point = setting.directory.url.appending(path: "point")
    let process = try SiblingProcess(
      "session", ["upload", setting.server.url("/files"), setting.file.path, point.path])
    let failure = #expect(throws: SiblingProcess.Failure.self) { try process.text() }
    #expect(failure?.status == SIGKILL)
    try await setting.server.waitForClosedConnections(1)
    let before = try #require(setting.uploads.all.first?.bytes.count)
    #expect(before < setting.bytes.count)
    let data = try UploadResumeData.decoded([UInt8](Data(contentsOf: point)))
    let watcher = UploadWatcher()
    let session = setting.session(delegate: watcher)
    session.uploadTask(resuming: data).resume()
    try await watcher.waitForEnd()
    session.invalidateAndCancel()
    #expect(watcher.record.withLock { $0.failure } == nil)
    setting.expectWhole()
    #expect(setting.server.requests.last?.fields["Upload-Offset"] == String(before))
  }

  /// A point that was persisted at the first interim response continues the upload of a process that was killed.
  @Test(arguments: drafts) func aPersistedPointContinues(draft: Draft) async throws {
    let setting = try cut(5 << 20, count: 8 << 20)
    let points = Mutex<[[UInt8]?]>([])
    let watcher = UploadWatcher()
    let session = setting.session(draft, failuresMax: 1, delegate: watcher)
    let task = try session.uploadTask(with: setting.request(), fromFile: setting.file)
    task.uploadPointHandler = { data in points.withLock { $0.append(data?.encoded()) } }
    task.resume()
    try await watcher.waitForEnd()
    session.invalidateAndCancel()
    let first = try #require(points.withLock { $0.first } ?? nil)
    let data = try UploadResumeData.decoded(first)
    #expect(data.path == setting.file.path && data.point.resource == setting.server.url("/files/1"))
    let next = UploadWatcher()
    let other = setting.session(delegate: next)
    let resumed = other.uploadTask(resuming: data)
    resumed.uploadPointHandler = { data in points.withLock { $0.append(data?.encoded()) } }
    resumed.resume()
    try await next.waitForEnd()
    other.invalidateAndCancel()
    #expect(next.record.withLock { $0.failure } == nil)
    setting.expectWhole()
    let last = try #require(points.withLock { $0.last } ?? nil)
    #expect(try UploadResumeData.decoded(last).point.acknowledged == 8 << 20)
  }
}
