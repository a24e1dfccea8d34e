import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite struct BecomeDownloadTests {
  /// A delegate that implements only the method for the response.
  private final class Chooser: NSObject, URLSessionDataDelegate {
    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) { completionHandler(.becomeDownload) }
  }

  /// Runs a data task that has a delegate of its own and becomes a download.
  ///
  /// - Parameter watch: A closure that gets the task before it is resumed.
  /// - Returns: The calls of the session's delegate.
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

  /// The progress of the data task also shows the end of the download task that replaces it.
  @Test(.timeLimit(.minutes(1))) func theProgressGoesAlong() async throws {
    var progress: Progress?
    _ = try await events { progress = $0.progress }
    #expect(progress?.isFinished == true && progress?.completedUnitCount == 5 && progress?.totalUnitCount == 5)
  }
}
