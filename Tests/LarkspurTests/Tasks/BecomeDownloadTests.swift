import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite struct BecomeDownloadTests {
  /// Has a word for the response, and for nothing else.
  private final class Chooser: NSObject, URLSessionDataDelegate {
    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) { completionHandler(.becomeDownload) }
  }

  /// What the session's delegate hears. `watch` is called before the task, which has a delegate of its own, is resumed.
  private func events(_ watch: (URLSessionDataTask) -> Void) async throws -> [String] {
    let server = try TestServer()
    server.route("GET", "/hello") { _ in .text("hello") }
    let delegate = RecordingDelegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/hello"))))
    task.delegate = Chooser()
    watch(task)
    task.resume()
    await delegate.wait()
    #expect(task.state == .completed)
    session.invalidateAndCancel()
    return delegate.events
  }

  @Test func theSessionsDelegateHearsOfItIfTheTasksHasNoWord() async throws {
    #expect(try await events { _ in } == ["download", "file hello", "metrics 1", "end"])
  }

  /// Who watches the first task sees the second one's end.
  @Test(.timeLimit(.minutes(1))) func theProgressGoesAlong() async throws {
    var progress: Progress?
    _ = try await events { progress = $0.progress }
    #expect(progress?.isFinished == true && progress?.completedUnitCount == 5 && progress?.totalUnitCount == 5)
  }
}
