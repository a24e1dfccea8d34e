import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Download tasks that load their files in segments.
@Suite(.timeLimit(.minutes(1))) struct SegmentedDownloadTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private static let total = 1_000_000
  private static let whole = Data(TestServer.content(count: total))

  private func url(_ path: String = "/range/\(total)") throws -> URL { try #require(URL(string: server.url(path))) }

  private var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    var segments = URLSessionConfiguration.SegmentedDownloads()
    segments.smallestPiece = 50_000
    configuration.segmentedDownloads = segments
    return configuration
  }

  private func session(_ recorder: DownloadRecorder) -> URLSession {
    URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
  }

  private func run(_ recorder: DownloadRecorder, _ make: (URLSession) throws -> URLSessionDownloadTask) async rethrows
    -> URLSessionDownloadTask
  {
    let session = session(recorder)
    let task = try make(session)
    task.resume()
    // The segments belong to a task that was made before.
    session.finishTasksAndInvalidate()
    await recorder.waitForEnd()
    return task
  }

  /// Serves a file of which requests for a range get all, and others the first `count` bytes.
  private func serveHalting(after count: Int) {
    server.route("GET", "/file") { request in
      let fields: TestServer.Fields = ["ETag": "\"1\"", "Accept-Ranges": "bytes"]
      if request.fields["If-Range"] == "\"1\"",
        let part = TestServer.Response.part(of: Self.total, for: request, fields)
      {
        return part
      }
      return TestServer.Response(
        fields: fields,
        body: .stream(count: Self.total) { writer in
          try writer.write(TestServer.content(count: count))
          try writer.pause(.seconds(120))
        })
    }
  }

  @Test func aTaskWithADelegate() async throws {
    let recorder = DownloadRecorder()
    let task = try await run(recorder) { try $0.downloadTask(with: url()) }
    #expect(recorder.error == nil && recorder.content == Self.whole)
    #expect(server.requests.count > 1 && server.requests.dropFirst().allSatisfy { $0.fields["Range"] != nil })
    #expect(recorder.events.suffix(2) == [.finished, .completed(nil)])
    let writes = recorder.events.compactMap { event -> (count: Int64, total: Int64, of: Int64)? in
      if case .wrote(let count, let total, let expected) = event { (count, total, expected) } else { nil }
    }
    #expect(writes.reduce(0) { $0 + $1.count } == Self.total && writes.last?.total == Int64(Self.total))
    #expect(writes.allSatisfy { $0.of == Int64(Self.total) })
    #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(task.countOfBytesReceived == Int64(Self.total) && task.progress.fractionCompleted == 1)
    // The delegate has not moved the file.
    #expect(recorder.location.map { FileManager.default.fileExists(atPath: $0.path) } == false)
  }

  @Test func theOtherForms() async throws {
    let session = URLSession(configuration: configuration)
    let (file, response) = try await session.download(from: url())
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == Self.whole && response.url?.path == "/range/\(Self.total)")
    let count = server.requests.count
    #expect(count > 1)
    let content = await withCheckedContinuation { continuation in
      let task = (try? url()).map { url in
        session.downloadTask(with: url) { url, _, _ in
          continuation.resume(returning: url.flatMap { try? Data(contentsOf: $0) })
        }
      }
      task?.resume()
    }
    #expect(content == Self.whole && server.requests.count > count + 1)
    #expect(await session.allTasks.isEmpty)
  }

  /// The content of an error is what an ordinary task gets.
  @Test func anErrorOfTheServer() async throws {
    let (file, response) = try await URLSession(configuration: configuration).download(from: url("/status/404"))
    defer { try? FileManager.default.removeItem(at: file) }
    #expect((response as? HTTPURLResponse)?.statusCode == 404)
  }

  @Test func aServerThatIsAway() async throws {
    let (nowhere, url) = (try #require(URL(string: "http://127.0.0.1:1/")), try self.url())
    let error = await #expect(throws: URLError.self) {
      _ = try await URLSession(configuration: configuration).download(from: nowhere)
    }
    #expect(error?.code == .cannotConnectToHost)
    // A server that is back after two failures.
    server.enqueue([.expectRequest, .reset])
    server.enqueue([.expectRequest, .close])
    let (file, _) = try await URLSession(configuration: configuration).download(from: url)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == Self.whole)
  }

  /// A request with a body, a range or a condition is the program's affair.
  @Test func otherRequestsAreOrdinary() async throws {
    server.route("POST", "/file") { _ in .content(count: Self.total) }
    let session = URLSession(configuration: configuration)
    var post = URLRequest(url: try url("/file"))
    post.httpMethod = "POST"
    var range = URLRequest(url: try url())
    range.setValue("bytes=0-9", forHTTPHeaderField: "Range")
    for (request, count) in [(post, Self.total), (range, 10)] {
      let (file, _) = try await session.download(for: request)
      defer { try? FileManager.default.removeItem(at: file) }
      #expect(try Data(contentsOf: file).count == count)
    }
    #expect(server.requests.count == 2)
  }

  @Test func aSettingThatCannotBeUsed() async throws {
    let configuration = configuration
    configuration.segmentedDownloads?.connections = 0
    let error = await #expect(throws: URLError.self) {
      _ = try await URLSession(configuration: configuration).download(from: url())
    }
    #expect(error?.code == .cannotConnectToHost && error?.localizedDescription.contains("segmentedDownloads") == true)
    #expect(server.requests.isEmpty)
  }

  // MARK: - Resuming

  private func cancelled(after count: Int) async throws -> Data? {
    serveHalting(after: count)
    let given = Mutex<Data?>(nil)
    let recorder = DownloadRecorder { task, total in
      guard total == count else { return }
      task.cancel { data in given.withLock { $0 = data } }
    }
    let configuration = configuration
    configuration.segmentedDownloads?.connections = 1
    let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    session.downloadTask(with: try url("/file")).resume()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled)
    let data = given.withLock { $0 }
    #expect(recorder.error?.downloadTaskResumeData == data)
    return data
  }

  /// Any session continues the segments that are on the disk.
  @Test func resumeData() async throws {
    let data = try #require(try await cancelled(after: 500_000))
    let recorder = DownloadRecorder()
    let session = URLSession.with(recorder)
    session.downloadTask(withResumeData: data).resume()
    await recorder.waitForEnd()
    #expect(recorder.error == nil && recorder.content == Self.whole)
    #expect(recorder.events.first == .resumed(at: 500_000, of: Int64(Self.total)))
    let ranges = server.requests.dropFirst().compactMap { $0.fields["Range"] }
    #expect(ranges.first?.hasPrefix("bytes=500000-") == true && ranges.count == server.requests.count - 1)
  }

  /// The files belong to the resume data until a download uses them.
  @Test func aTaskThatIsCancelledBeforeItBegins() async throws {
    let data = try #require(try await cancelled(after: 500_000))
    let session = URLSession(configuration: .ephemeral)
    session.downloadTask(withResumeData: data).cancel()
    let again = try #require(await session.downloadTask(withResumeData: data).cancelByProducingResumeData())
    let recorder = DownloadRecorder()
    URLSession.with(recorder).downloadTask(withResumeData: again).resume()
    await recorder.waitForEnd()
    #expect(recorder.content == Self.whole && server.requests.dropFirst().allSatisfy { $0.fields["Range"] != nil })
  }

  /// Files that are gone are no error: the program wants the resource in any case.
  @Test func resumeDataOfFilesThatAreGone() async throws {
    let data = try #require(try await cancelled(after: 500_000))
    for _ in 0..<2 {
      // The first download takes the files.
      server.route("GET", "/file") { _ in
        TestServer.Response(fields: ["ETag": "\"2\""], body: .content(0..<Self.total))
      }
      let recorder = DownloadRecorder()
      URLSession.with(recorder).downloadTask(withResumeData: data).resume()
      await recorder.waitForEnd()
      #expect(recorder.error == nil && recorder.content == Self.whole)
    }
  }

  @Test func aDownloadWithoutAValidatorHasNoResumeData() async throws {
    server.route("GET", "/file") { _ in
      TestServer.Response(
        body: .stream(count: Self.total) { writer in
          try writer.write(TestServer.content(count: 1_000))
          try writer.pause(.seconds(120))
        })
    }
    let given = Mutex<[Data?]>([])
    let recorder = DownloadRecorder { task, _ in task.cancel { data in given.withLock { $0.append(data) } } }
    session(recorder).downloadTask(with: try url("/file")).resume()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled && given.withLock { $0 } == [nil])
  }

  @Test func aSuspendedTask() async throws {
    serveHalting(after: 500_000)
    let recorder = DownloadRecorder { task, total in if total == 500_000 { task.suspend() } }
    let configuration = configuration
    configuration.segmentedDownloads?.connections = 1
    let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    let task = session.downloadTask(with: try url("/file"))
    task.resume()
    // A pause ends the request.
    try await server.waitForClosedConnections(1)
    #expect(task.state == .suspended)
    task.resume()
    await recorder.waitForEnd()
    #expect(recorder.error == nil && recorder.content == Self.whole)
    #expect(server.requests.dropFirst().allSatisfy { $0.fields["Range"] != nil })
  }

  // MARK: - Delegates

  /// The delegate is asked about the task that the program has made.
  @Test func aChallengeAndARedirection() async throws {
    final class Delegate: NSObject, URLSessionTaskDelegate {
      let asked = Mutex<(challenges: Set<Int>, redirections: Set<Int>, created: Int)>(([], [], 0))

      func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { asked.withLock { $0.created += 1 } }

      func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) {
        asked.withLock { _ = $0.challenges.insert(task.taskIdentifier) }
        completionHandler(.useCredential, URLCredential(user: "user", password: "secret", persistence: .forSession))
      }

      func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
      ) {
        asked.withLock { _ = $0.redirections.insert(task.taskIdentifier) }
        completionHandler(request)
      }
    }
    server.route("GET", "/start") { _ in TestServer.Response(status: 302, fields: ["Location": "/file"]) }
    server.route("GET", "/file") { request in
      guard request.fields["Authorization"] != nil else {
        return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"one\""])
      }
      return TestServer.Response(fields: ["ETag": "\"1\""], body: .content(0..<Self.total))
    }
    for isOwn in [false, true] {
      let delegate = Delegate()
      let session = URLSession(configuration: configuration, delegate: isOwn ? nil : delegate, delegateQueue: nil)
      let task = session.downloadTask(with: try url("/start"))
      if isOwn { task.delegate = delegate }
      task.resume()
      await Wait.until("the task has ended") { task.state == .completed }
      #expect(task.error == nil && task.currentRequest?.url?.path == "/file")
      let asked = delegate.asked.withLock { $0 }
      #expect(asked.challenges == [task.taskIdentifier] && asked.redirections == [task.taskIdentifier])
      #expect(asked.created == (isOwn ? 0 : 1))
    }
  }
}
