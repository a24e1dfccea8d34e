import AFNetworking
import LarkspurTestServer
import Testing

/// Blocks written on the main actor, as in an app, run on the main queue.
@Suite struct ScreenTests {
  @MainActor private final class Screen {
    private(set) var songs: [String] = []
    private(set) var failure: String?
    private let manager: AFHTTPSessionManager
    var onEnd: () -> Void = {}

    init(_ manager: AFHTTPSessionManager) { self.manager = manager }

    func load(_ path: String) {
      manager.get(
        path, parameters: nil, headers: nil, progress: nil,
        success: { (task: URLSessionDataTask, responseObject: Any?) in
          self.songs = responseObject as? [String] ?? []
          self.onEnd()
        },
        failure: { (task: URLSessionDataTask?, error: any Error) in
          self.failure = error.localizedDescription
          self.onEnd()
        })
    }
  }

  @Test @MainActor func blocksOfTheMainActor() async throws {
    let fixture = try ManagerFixture()
    fixture.server.route("GET", "/songs") { _ in .json(["dawn", "noon"]) }
    let screen = Screen(fixture.manager)
    for path in ["songs", "status/404"] {
      await withCheckedContinuation { continuation in
        screen.onEnd = { continuation.resume() }
        screen.load(path)
      }
    }
    #expect(screen.songs == ["dawn", "noon"] && screen.failure != nil)
  }
}
