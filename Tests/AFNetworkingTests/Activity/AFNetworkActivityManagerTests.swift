import LarkspurTestServer
import Testing

@testable import AFNetworking

/// AFNetworking's tests of its network activity manager, by their names, with a clock that the test sets.
@Suite(.timeLimit(.minutes(1))) struct AFNetworkActivityManagerTests {
  let fixture: ManagerFixture
  let world = ActivityIndicatorManagerTests.World()

  init() throws { fixture = try ManagerFixture() }

  /// A manager without delays that counts the requests to this suite's server, and shows the indicator at once.
  private func manager(_ journal: Journal, isEnabled: Bool = true) throws -> AFNetworkActivityIndicatorManager {
    let port = try fixture.url("/").port
    let manager = AFNetworkActivityIndicatorManager(
      now: { 0 }, schedule: { _, _ in }, scheduler: AFViewScheduler { $0() }, counts: { $0.url?.port == port })
    manager.setNetworkingActivityActionWith { journal.note("\($0)") }
    (manager.activationDelay, manager.completionDelay) = (0, 0)
    manager.isEnabled = isEnabled
    return manager
  }

  private func isShown(_ path: String) async throws -> [String] {
    let journal = Journal()
    let manager = try manager(journal)
    let result = await outcome {
      fixture.manager.get(path, parameters: nil, headers: nil, progress: nil, success: $0, failure: $1)
    }
    #expect((result.error == nil) == (path == "get"))
    await journal.wait { $0.count == 2 }
    #expect(!manager.isNetworkActivityIndicatorVisible)
    return journal.lines
  }

  @Test func thatNetworkActivityIndicatorTurnsOnAndOffIndicatorWhenRequestSucceeds() async throws {
    #expect(try await isShown("get") == ["true", "false"])
  }

  @Test func thatNetworkActivityIndicatorTurnsOnAndOffIndicatorWhenRequestFails() async throws {
    #expect(try await isShown("status/404") == ["true", "false"])
  }

  @Test func thatVisibilityDelaysAreApplied() {
    let manager = world.makeManager()
    (manager.activationDelay, manager.completionDelay) = (1, 1)
    manager.isEnabled = true
    manager.incrementActivityCount()
    world.advance(to: 0.999)
    #expect(world.journal.lines == [])
    world.advance(to: 2)
    #expect(world.journal.lines == ["true"])
    manager.decrementActivityCount()
    world.advance(to: 2.999)
    #expect(world.journal.lines == ["true"])
    world.advance(to: 3)
    #expect(world.journal.lines == ["true", "false"])
  }

  @Test func thatIndicatorBlockIsOnlyCalledOnceEachForStartAndEndForMultipleRequests() {
    let manager = world.makeManager()
    (manager.activationDelay, manager.completionDelay) = (1, 1)
    manager.isEnabled = true
    for _ in 0..<2 { manager.incrementActivityCount() }
    world.advance(to: 2)
    manager.decrementActivityCount()
    world.advance(to: 4)
    manager.decrementActivityCount()
    world.advance(to: 5)
    #expect(world.journal.lines == ["true", "false"])
  }

  // MARK: - Version 2

  private func isShown(by operation: AFHTTPRequestOperation) async throws -> [String] {
    let journal = Journal()
    let manager = try manager(journal)
    operation.start()
    await journal.wait { $0.count == 2 }
    #expect(!manager.isNetworkActivityIndicatorVisible)
    return journal.lines
  }

  @Test func thatNetworkActivityIndicatorTurnsOffIndicatorWhenOperationCompletesSuccessfully() async throws {
    let operation = AFHTTPRequestOperation(request: try fixture.request("/get"))
    #expect(try await isShown(by: operation) == ["true", "false"])
  }

  @Test func thatNetworkActivityIndicatorTurnsOffIndicatorWhenOperationFails() async throws {
    let operation = AFHTTPRequestOperation(request: try fixture.request("/status/500"))
    #expect(try await isShown(by: operation) == ["true", "false"])
  }

  @Test func thatNetworkActivityIsNotTouchedWhenManagerDisabled() async throws {
    let journal = Journal()
    let manager = try manager(journal, isEnabled: false)
    // The end of a request is heard of by both managers, and the second one shows it.
    #expect(try await isShown("get") == ["true", "false"])
    #expect(journal.lines == [] && !manager.isNetworkActivityIndicatorVisible)
  }
}
