import Foundation
import Larkspur
import Synchronization
import Testing

/// `didCreateTask` goes to the task's own delegate if it implements the method, as every other call does.
@Suite struct TaskCreationTests {
  private final class Creations: NSObject, URLSessionTaskDelegate {
    let tasks = Mutex<[URLSessionTask]>([])

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
      tasks.withLock { $0.append(task) }
    }
  }

  /// A delegate that implements no method.
  private final class Silent: NSObject, URLSessionTaskDelegate {}

  private func isCreation(_ event: SessionRecorder.Event) -> Bool {
    if case .created = event { true } else { false }
  }

  @Test func theTasksDelegateHearsOfIt() async throws {
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: "data:,hello"))
    let delegate = Creations()
    _ = try await session.data(from: url, delegate: delegate)
    _ = try await session.upload(for: URLRequest(url: url), from: Data(), delegate: delegate)
    try FileManager.default.removeItem(at: try await session.download(from: url, delegate: delegate).0)
    let (bytes, _) = try await session.bytes(from: url, delegate: delegate)
    let tasks = delegate.tasks.withLock { $0 }
    #expect(tasks.count == 4)
    #expect(tasks.map { $0 is URLSessionUploadTask } == [false, true, false, false])
    #expect(tasks.map { $0 is URLSessionDownloadTask } == [false, false, true, false])
    #expect(tasks.last === bytes.task)
    #expect(!recorder.events.contains(where: isCreation))
  }

  @Test func theSessionsDoesIfTheTasksHasNoMethod() async throws {
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: "data:,hello"))
    _ = try await session.data(from: url, delegate: Silent())
    _ = try await session.data(from: url)
    #expect(recorder.events.filter(isCreation).count == 2)
  }
}
