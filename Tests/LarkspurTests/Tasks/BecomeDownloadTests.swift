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

  @Test func theSessionsDelegateHearsOfItIfTheTasksHasNoWord() async throws {
    let server = try TestServer()
    server.route("GET", "/hello") { _ in .text("hello") }
    let delegate = RecordingDelegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/hello"))))
    task.delegate = Chooser()
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["download", "file hello", "metrics 1", "end"])
    #expect(task.state == .completed)
    session.invalidateAndCancel()
  }

  /// Who watches the first task sees the second one's end.
  @Test(.timeLimit(.minutes(1))) func theProgressGoesAlong() async throws {
    let server = try TestServer()
    server.route("GET", "/hello") { _ in .text("hello") }
    let delegate = RecordingDelegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/hello"))))
    task.delegate = Chooser()
    let progress = task.progress
    task.resume()
    await delegate.wait()
    #expect(progress.isFinished && progress.completedUnitCount == 5 && progress.totalUnitCount == 5)
    session.invalidateAndCancel()
  }
}
