import LarkspurTestServer
import Synchronization
import Testing

@testable import AFNetworking

/// The network activity manager, with a clock that the test sets.
@Suite(.timeLimit(.minutes(1))) struct ActivityIndicatorManagerTests {
  /// A clock with the blocks that are due later, and the thread of the views.
  final class World: Sendable {
    struct State {
      var now: UInt64 = 0
      var due: [(time: UInt64, body: @Sendable () -> Void)] = []
      var views: [@Sendable () -> Void] = []
    }

    let state = Mutex(State())
    let journal = Journal()

    func makeManager() -> AFNetworkActivityIndicatorManager {
      let manager = AFNetworkActivityIndicatorManager(
        now: { [self] in state.withLock { $0.now } },
        schedule: { [self] time, body in state.withLock { $0.due.append((time, body)) } },
        scheduler: AFViewScheduler { [self] work in state.withLock { $0.views.append(work) } },
        // Requests of other tests are notified here, too.
        counts: { _ in false })
      manager.setNetworkingActivityActionWith { [journal] in journal.note("\($0)") }
      return manager
    }

    /// Lets the clock advance, and runs what is due.
    func advance(to seconds: Double) {
      let time = UInt64(seconds * 1e9)
      let due = state.withLock { state in
        state.now = time
        let due = state.due.filter { $0.time <= time }
        state.due.removeAll { $0.time <= time }
        return due
      }
      for (_, body) in due { body() }
      showViews()
    }

    func showViews() {
      for work in state.withLock({ exchange(&$0.views, with: []) }) { work() }
    }
  }

  let world = World()

  @Test func defaults() {
    let manager = AFNetworkActivityIndicatorManager()
    #expect(!manager.isEnabled && !manager.isNetworkActivityIndicatorVisible)
    #expect(manager.activationDelay == 1 && manager.completionDelay == 0.17)
    manager.activationDelay = -1
    manager.completionDelay = .nan
    #expect(manager.activationDelay == 0 && manager.completionDelay == 0)
    manager.activationDelay = .infinity
    #expect(manager.activationDelay == 31_536_000)
    #expect(AFNetworkActivityIndicatorManager.shared() === AFNetworkActivityIndicatorManager.shared())
  }

  @Test func activityThatLasts() {
    let manager = world.makeManager()
    manager.isEnabled = true
    manager.incrementActivityCount()
    world.advance(to: 0.99)
    #expect(world.journal.lines == [] && !manager.isNetworkActivityIndicatorVisible)
    world.advance(to: 1)
    #expect(world.journal.lines == ["true"] && manager.isNetworkActivityIndicatorVisible)
    manager.decrementActivityCount()
    world.advance(to: 1.1)
    #expect(manager.isNetworkActivityIndicatorVisible)
    manager.incrementActivityCount()
    world.advance(to: 2)
    #expect(world.journal.lines == ["true"])
    manager.decrementActivityCount()
    world.advance(to: 2.17)
    #expect(world.journal.lines == ["true", "false"] && !manager.isNetworkActivityIndicatorVisible)
  }

  @Test func shortActivityIsNotShown() {
    let manager = world.makeManager()
    manager.isEnabled = true
    manager.incrementActivityCount()
    manager.decrementActivityCount()
    world.advance(to: 5)
    #expect(world.journal.lines == [])
  }

  /// Nothing is shown while the manager is disabled. What has started meanwhile counts.
  @Test func whileDisabled() {
    let manager = world.makeManager()
    manager.activationDelay = 0
    manager.incrementActivityCount()
    manager.incrementActivityCount()
    manager.decrementActivityCount()
    world.advance(to: 5)
    #expect(world.journal.lines == [])
    manager.isEnabled = true
    world.showViews()
    #expect(world.journal.lines == ["true"])
  }

  @Test func disablingHides() {
    let manager = world.makeManager()
    manager.activationDelay = 0
    manager.isEnabled = true
    manager.incrementActivityCount()
    world.showViews()
    manager.isEnabled = false
    world.showViews()
    #expect(world.journal.lines == ["true", "false"])
  }

  // MARK: - Notifications

  enum Kind: CaseIterable, Sendable {
    case task, failingTask, cancelledTask, awaited, withHandlerOfItsOwn, operation, failingOperation
  }

  /// The indicator is shown with the start of a request, and hidden with its end, by whatever it is loaded.
  @Test(arguments: Kind.allCases) func requests(kind: Kind) async throws {
    let fixture = try ManagerFixture()
    let port = try fixture.url("/").port
    let journal = Journal()
    // Requests of other tests are notified here, too.
    let manager = AFNetworkActivityIndicatorManager(
      now: { 0 }, schedule: { _, _ in }, scheduler: AFViewScheduler { $0() }, counts: { $0.url?.port == port })
    manager.setNetworkingActivityActionWith { journal.note("\($0) \(MainQueue.isCurrent)") }
    manager.activationDelay = 0
    manager.completionDelay = 0
    manager.isEnabled = true
    let request = try fixture.request(kind == .failingTask || kind == .failingOperation ? "/status/500" : "/get")
    switch kind {
    case .task, .failingTask: fixture.manager.dataTask(with: request, completionHandler: nil).resume()
    case .cancelledTask:
      let task = fixture.manager.dataTask(with: try fixture.request("/hang"), completionHandler: nil)
      task.resume()
      await journal.wait { $0.count == 1 }
      // Both are notified, and only one of them counts.
      task.suspend()
      task.cancel()
    case .awaited: _ = try await fixture.manager.get("get")
    case .withHandlerOfItsOwn: fixture.manager.session.dataTask(with: request) { _, _, _ in }.resume()
    case .operation, .failingOperation: AFHTTPRequestOperation(request: request).start()
    }
    await journal.wait { $0.count == 2 }
    #expect(journal.lines == ["true true", "false true"])
    #expect(!manager.isNetworkActivityIndicatorVisible)
  }
}
