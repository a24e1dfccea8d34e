import AFNetworking
import Dispatch
import LarkspurTestServer
import TestKit
import Testing

/// Tests the destination of downloads.
@Suite struct ManagerDownloadTests {
  let fixture: ManagerFixture
  let directory: TemporaryDirectory
  var manager: AFHTTPSessionManager { fixture.manager }

  init() throws {
    fixture = try ManagerFixture()
    directory = try TemporaryDirectory()
  }

  private func load(
    _ path: String, destination: ((URL, URLResponse) -> URL)? = nil
  ) async throws -> BlockResult {
    let request = try fixture.request(path)
    return await outcome { receive in
      manager.downloadTask(with: request, progress: nil, destination: destination) { receive($0, $1, $2) }.resume()
    }
  }

  @Test func theDestinationDecides() async throws {
    let (journal, file) = (Journal(), directory.file("loaded"))
    let outcome = try await load("/bytes/5000") { temporary, response in
      journal.note(
        "\((try? Data(contentsOf: temporary))?.count ?? 0) \((response as? HTTPURLResponse)?.statusCode ?? 0)")
      return file
    }
    #expect(outcome.error == nil && outcome.object as? URL == file && outcome.isOnMain)
    #expect(journal.lines == ["5000 200"])
    #expect(try Data(contentsOf: file).elementsEqual(TestServer.content(count: 5000)))
  }

  @Test func withoutADestinationTheFileIsGone() async throws {
    let outcome = try await load("/bytes/5000")
    #expect(outcome.error == nil && outcome.object == nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path).isEmpty)
  }

  /// The manager's block takes precedence over the task's destination, which counts if the block returns `nil`.
  @Test func theManagersBlockComesFirst() async throws {
    let (mine, theirs, journal) = (directory.file("manager"), directory.file("task"), Journal())
    manager.setDownloadTaskDidFinishDownloadingBlock { _, _, _ in
      journal.note("manager")
      return mine
    }
    #expect(try await load("/bytes/10").object as? URL == mine)
    try FileManager.default.removeItem(at: mine)
    let outcome = try await load("/bytes/10") { _, _ in
      journal.note("task")
      return theirs
    }
    #expect(outcome.object as? URL == mine && journal.lines == ["manager", "manager"])
    manager.setDownloadTaskDidFinishDownloadingBlock { _, _, _ in nil }
    #expect(try await load("/bytes/10") { _, _ in theirs }.object as? URL == theirs)
  }

  /// An existing file is not overwritten: the notification and the completion handler report the error.
  @Test func aFileThatCannotBeMoved() async throws {
    let (file, journal) = (directory.file("taken"), Journal())
    try Data("mine".utf8).write(to: file)
    let observer = Notified(.AFURLSessionDownloadTaskDidFailToMoveFile, of: nil) { notification in
      guard let task = notification.object as? URLSessionTask, task.originalRequest?.url?.path == "/bytes/77" else {
        return
      }
      let error = notification.userInfo?[NSUnderlyingErrorKey] as? NSError
      journal.note("\(error?.domain ?? "none") \(error?.code ?? 0)")
    }
    let outcome = try await load("/bytes/77") { _, _ in file }
    let error = try #require(outcome.error)
    #expect(journal.lines == ["\(error.domain) \(error.code)"])
    #expect(error.domain == NSCocoaErrorDomain && outcome.object == nil)
    #expect(try Data(contentsOf: file) == Data("mine".utf8))
    withExtendedLifetime(observer) {}
  }

  /// The file of an unacceptable response is moved to its destination, and the error says why the response is
  /// unacceptable.
  @Test func aResponseThatIsNotAcceptable() async throws {
    let file = directory.file("loaded")
    let outcome = try await load("/status/404") { _, _ in file }
    #expect(outcome.error?.domain == AFURLResponseSerializationErrorDomain)
    #expect(outcome.object as? URL == file)
    #expect(FileManager.default.fileExists(atPath: file.path))
  }

  @Test func goingOn() async throws {
    let gate = DispatchSemaphore(value: 0)
    let file = directory.file("loaded")
    fixture.server.route("GET", "/large") { request in
      let first = request.fields["Range"].flatMap { Int($0.dropFirst(6).prefix { $0 != "-" }) } ?? 0
      var response = TestServer.Response(
        status: first == 0 ? 200 : 206, fields: ["ETag": "\"one\"", "Accept-Ranges": "bytes"],
        body: .content(first..<1_000_000))
      if first > 0 {
        response.fields["Content-Range"] = "bytes \(first)-999999/1000000"
      } else {
        response.body = .stream(count: 1_000_000) { writer in
          try writer.write(TestServer.content(0..<400_000))
          gate.wait()
          try writer.write(TestServer.content(400_000..<1_000_000))
        }
      }
      return response
    }
    let journal = Journal()
    manager.setDownloadTaskDidResumeBlock { _, _, offset, total in
      journal.note("resumed \(offset > 0) \(total)")
    }
    let request = try fixture.request("/large")
    let task = manager.downloadTask(
      with: request, progress: { if $0.completedUnitCount > 0 { journal.note("begun") } }, completionHandler: nil)
    task.resume()
    await journal.wait(for: "begun")
    let data = await withCheckedContinuation { continuation in
      task.cancel { continuation.resume(returning: $0) }
    }
    gate.signal()
    let resumeData = try #require(data)
    let outcome = await outcome { receive in
      manager.downloadTask(withResumeData: resumeData, destination: { _, _ in file }) { receive($0, $1, $2) }.resume()
    }
    #expect(outcome.error == nil)
    #expect(try Data(contentsOf: file).elementsEqual(TestServer.content(count: 1_000_000)))
    #expect(journal.lines.contains("resumed true 1000000"))
  }
}
