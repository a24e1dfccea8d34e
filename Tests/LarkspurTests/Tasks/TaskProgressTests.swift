import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

@Suite struct TaskProgressTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// The progress of a completed task. The test requests the progress before the task starts.
  private func end(_ request: URLRequest) async -> Progress {
    let session = URLSession(configuration: .ephemeral)
    return await withCheckedContinuation { continuation in
      let progress = Handed()
      let task = session.dataTask(with: request) { _, _, _ in continuation.resume(returning: progress.value) }
      progress.value = task.progress
      task.resume()
    }
  }

  private final class Handed: @unchecked Sendable { var value = Progress(totalUnitCount: 0) }

  private func request(_ path: String) throws -> URLRequest {
    URLRequest(url: try #require(URL(string: server.url(path))))
  }

  @Test func aTaskThatHasLoadedIsFinished() async throws {
    server.route("GET", "/empty") { _ in TestServer.Response(status: 204) }
    let paths = [("/bytes/1000", 1000), ("/empty", 1)]
    for (path, count) in paths {
      let progress = await end(try request(path))
      #expect(progress.isFinished && progress.fractionCompleted == 1, "\(path)")
      #expect(progress.completedUnitCount == count && progress.totalUnitCount == count, "\(path)")
    }
    var upload = try request("/post")
    upload.httpMethod = "POST"
    upload.httpBody = Data(count: 500)
    let progress = await end(upload)
    #expect(progress.isFinished && progress.completedUnitCount > 500)
  }

  /// An announced length of `Int64.max` plus the sent bytes does not overflow.
  @Test func aServerMayClaimAnyLength() async throws {
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: \(Int64.max)\r\n\r\npart"), .close])
    var upload = try request("/cut")
    upload.httpMethod = "POST"
    upload.httpBody = Data(count: 500)
    let progress = await end(upload)
    #expect(progress.completedUnitCount == 504 && !progress.isFinished)
  }

  /// Tasks of several sessions update one parent progress from several threads.
  @Test func tasksOfSeveralSessionsHaveOneParent() async throws {
    let url = try #require(URL(string: server.url("/bytes/1000")))
    let sessions = (0..<4).map { _ in URLSession(configuration: .ephemeral) }
    let count = 40
    let parent = Progress(totalUnitCount: Int64(count))
    let (ends, end) = AsyncStream<Void>.makeStream()
    let tasks = (0..<count).map { sessions[$0 % 4].dataTask(with: url) { _, _, _ in end.yield() } }
    for task in tasks { parent.addChild(task.progress, withPendingUnitCount: 1) }
    for task in tasks { task.resume() }
    var ended = ends.makeAsyncIterator()
    for _ in tasks { await ended.next() }
    #expect(parent.completedUnitCount == count && parent.isFinished)
  }

  /// The progress of a failed task counts the bytes that arrived, and is not finished.
  @Test func aTaskThatHasFailedIsNot() async throws {
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"), .close])
    let progress = await end(try request("/cut"))
    #expect(!progress.isFinished && progress.completedUnitCount == 4 && progress.totalUnitCount == 100)
    // The total length is unknown.
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\npart"), .close])
    let unknown = await end(try request("/cut"))
    #expect(!unknown.isFinished && unknown.completedUnitCount == 4 && unknown.fractionCompleted == 0)
  }

  @Test(.timeLimit(.minutes(1))) func aProgressControlsItsTask() async throws {
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = session.dataTask(with: try request("/delay/100000"))
    task.resume()
    let progress = task.progress
    progress.pause()
    await Wait.until("the task is suspended") { task.state == .suspended }
    progress.resume()
    await Wait.until("the task runs") { task.state == .running }
    progress.cancel()
    await recorder.waitForEnds()
    #expect((task.error as? URLError)?.code == .cancelled)
    session.invalidateAndCancel()
  }
}
