import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite struct TaskProgressTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// The task's progress, asked for before it runs, at its end.
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

  /// What has come before the failure is what has been done.
  @Test func aTaskThatHasFailedIsNot() async throws {
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"), .close])
    let progress = await end(try request("/cut"))
    #expect(!progress.isFinished && progress.completedUnitCount == 4 && progress.totalUnitCount == 100)
  }
}
