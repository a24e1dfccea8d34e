import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests downloads whose files the delegate leaves.
@Suite(.timeLimit(.minutes(1))) struct BackgroundSessionEndingTests {
  let fixture: BackgroundFixture

  init() throws {
    fixture = try BackgroundFixture()
    fixture.server.route("GET", "/file") { _ in .text("content") }
  }

  /// A delegate that leaves files until it has a place for them.
  private final class Leaver: NSObject, URLSessionDownloadDelegate {
    let leaves = Mutex(true)
    let content = Mutex<String?>(nil)
    let error = Mutex<URLError?>(nil)
    let (hasLeft, isOver, isFinished, isInvalid) = (
      TestServer.Signal(), TestServer.Signal(), TestServer.Signal(), TestServer.Signal()
    )

    func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
      guard leaves.withLock({ $0 }) else {
        return content.withLock { $0 = try? String(contentsOf: location, encoding: .utf8) }
      }
      downloadTask.leaveFile()
      hasLeft.fire()
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      self.error.withLock { $0 = error as? URLError }
      isOver.fire()
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { isFinished.fire() }
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { isInvalid.fire() }
  }

  private func left() async throws -> (Leaver, URLSession, URLSessionDownloadTask) {
    let delegate = Leaver()
    let session = fixture.session(delegate)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.resume()
    try await delegate.hasLeft.wait()
    return (delegate, session, task)
  }

  @Test func aFileIsDeliveredOnceMore() async throws {
    let (delegate, session, task) = try await left()
    #expect(task.state == .running && !delegate.isOver.hasFired)
    delegate.leaves.withLock { $0 = false }
    session.deliverLeftFiles()
    try await delegate.isOver.wait()
    try await delegate.isFinished.wait()
    #expect(delegate.content.withLock { $0 } == "content" && task.state == .completed)
    session.finishTasksAndInvalidate()
    try await delegate.isInvalid.wait()
    #expect(fixture.journal().isEmpty)
  }

  /// The session ends without the file, and the next one delivers it.
  @Test func aFileOutlivesItsSession() async throws {
    let (delegate, session, _) = try await left()
    session.finishTasksAndInvalidate()
    try await delegate.isInvalid.wait()
    #expect(!delegate.isOver.hasFired && fixture.journal() == ["1.part", "1.task"])
    let next = Leaver()
    next.leaves.withLock { $0 = false }
    let other = fixture.session(next)
    try await next.isOver.wait()
    #expect(next.content.withLock { $0 } == "content" && next.error.withLock { $0 } == nil)
    other.finishTasksAndInvalidate()
    try await next.isInvalid.wait()
    #expect(fixture.journal().isEmpty && fixture.server.requests.count == 1)
  }

  /// A cancelled task has no file.
  @Test(arguments: [true, false]) func aFileIsCancelled(isBySession: Bool) async throws {
    let (delegate, session, task) = try await left()
    if isBySession { session.invalidateAndCancel() } else { task.cancel() }
    try await delegate.isOver.wait()
    #expect(delegate.error.withLock { $0?.code } == .cancelled)
    session.finishTasksAndInvalidate()
    try await delegate.isInvalid.wait()
    #expect(fixture.journal().isEmpty)
  }
}
