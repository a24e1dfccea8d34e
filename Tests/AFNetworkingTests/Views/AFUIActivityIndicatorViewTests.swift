import AFNetworking
import LarkspurTestServer
import TestKit
import Testing

/// AFNetworking's tests of `UIActivityIndicatorView` and `UIRefreshControl`, by their names: a view that is gone does
/// not hear of its task.
@Suite(.timeLimit(.minutes(1))) struct AFUIActivityIndicatorViewTests {
  enum Kind: CaseIterable, Sendable { case activityIndicator, refreshControl }

  let fixture: ManagerFixture

  init() throws { fixture = try ManagerFixture() }

  /// Runs `change` with a task whose view has been released, and lets the task complete.
  ///
  /// - Returns: Whether the notification has been posted of the task.
  private func isPosted(
    _ name: NSNotification.Name, ofATaskWithout kind: Kind, _ change: (URLSessionTask) -> Void
  ) async throws -> Bool {
    let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
    // The task cannot be over before `change` is.
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .respond(.json([])), .close])
    let task = fixture.manager.dataTask(with: try fixture.request("/slow")) { _, _, error in
      continuation.yield(error == nil)
    }
    let (views, notes) = (Journal(), Journal())
    let notified = Notified(name, of: task) { _ in notes.note("posted") }
    defer { withExtendedLifetime(notified) {} }
    weak var released: TaskTargetTests.Spinner?
    do {
      let view = TaskTargetTests.Spinner(views)
      released = view
      switch kind {
      case .activityIndicator: view.setAnimatingWithStateOf(task)
      case .refreshControl: view.setRefreshingWithStateOf(task)
      }
    }
    #expect(views.lines == ["stop"])
    change(task)
    signal.fire()
    #expect(await stream.first { _ in true } == true)
    await notes.wait { !$0.isEmpty }
    // Only a call of the view itself can keep the view for a moment.
    await Wait.until("the view is released") { released == nil }
    #expect(task.state == .completed && views.lines.last == "stop")
    return notes.lines.contains("posted")
  }

  @Test(arguments: Kind.allCases) func taskDidResumeNotificationDoesNotCauseCrash(kind: Kind) async throws {
    #expect(try await isPosted(.AFNetworkingTaskDidResume, ofATaskWithout: kind) { $0.resume() })
  }

  @Test(arguments: Kind.allCases) func taskDidCompleteNotificationDoesNotCauseCrash(kind: Kind) async throws {
    #expect(try await isPosted(.AFNetworkingTaskDidComplete, ofATaskWithout: kind) { $0.resume() })
  }

  @Test(arguments: Kind.allCases) func taskDidSuspendNotificationDoesNotCauseCrash(kind: Kind) async throws {
    let isPosted = try await isPosted(.AFNetworkingTaskDidSuspend, ofATaskWithout: kind) { task in
      task.resume()
      task.suspend()
      task.resume()
    }
    #expect(isPosted)
  }
}
