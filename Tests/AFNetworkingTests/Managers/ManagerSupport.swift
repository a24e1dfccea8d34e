import AFNetworking
import Dispatch
import LarkspurTestServer
import Synchronization
import Testing

/// A server and a manager for it. Deinitialization invalidates the manager's session.
final class ManagerFixture: Sendable {
  let server: TestServer
  let manager: AFHTTPSessionManager

  init(tls: TestServer.TLS? = nil) throws {
    MainQueue.mark()
    server = try TestServer(tls: tls)
    manager = AFHTTPSessionManager(baseURL: URL(string: server.url("/")), sessionConfiguration: .ephemeral)
    server.route("GET", "/secret") { request in
      guard request.fields["authorization"] == "Basic dXNlcjpwYXNzd29yZA==" else {
        return TestServer.Response(
          status: 401, fields: ["WWW-Authenticate": "Basic realm=\"Fake Realm\""],
          body: .text("who are you?"))
      }
      return .json(["in": true])
    }
    server.route("GET", "/elsewhere") { _ in .redirect(to: "/get") }
  }

  deinit { manager.invalidateSessionCancelingTasks(true, resetSession: false) }

  func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  func request(_ path: String) throws -> URLRequest { URLRequest(url: try url(path)) }
}

/// Detects the main queue, which need not run on the main thread: if that thread is busy otherwise, threads of Dispatch
/// serve the queue.
enum MainQueue {
  private static let key: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  static var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }

  /// Marks the main queue. Must run before the first block.
  static func mark() { _ = key }
}

/// The values that a block was called with.
struct BlockResult: @unchecked Sendable {
  var task: URLSessionTask?
  var response: URLResponse?
  var object: Any?
  var error: NSError?
  /// Whether the block ran on the main queue.
  var isOnMain = false

  /// The member of a JSON object at a path.
  subscript(_ path: String...) -> String? {
    var value = object
    for name in path { value = (value as? [String: Any])?[name] }
    return value.map { "\($0)" }
  }
}

/// Runs a function that takes a completion handler, and waits for the handler's call.
func outcome(
  _ start: (@escaping (URLResponse, Any?, (any Error)?) -> Void) -> Void
) async -> BlockResult {
  await withCheckedContinuation { continuation in
    start { response, object, error in
      continuation.resume(
        returning: BlockResult(
          response: response, object: object, error: error as NSError?, isOnMain: MainQueue.isCurrent))
    }
  }
}

/// Runs a function that takes blocks for success and failure, and waits for the call of either.
func outcome(
  _ start: (
    @escaping (URLSessionDataTask, Any?) -> Void, @escaping (URLSessionDataTask?, any Error) -> Void
  ) -> Void
) async -> BlockResult {
  await withCheckedContinuation { continuation in
    start(
      {
        continuation.resume(
          returning: BlockResult(task: $0, response: $0.response, object: $1, isOnMain: MainQueue.isCurrent))
      },
      {
        continuation.resume(
          returning: BlockResult(task: $0, response: $0?.response, error: $1 as NSError, isOnMain: MainQueue.isCurrent))
      })
  }
}

/// A log of events from any thread, in order.
final class Journal: Sendable {
  private struct State {
    var lines: [String] = []
    var waiters: [(isMet: @Sendable ([String]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  var lines: [String] { state.withLock { $0.lines } }

  func note(_ line: String) {
    let met = state.withLock { state in
      state.lines.append(line)
      let met = state.waiters.filter { $0.isMet(state.lines) }
      state.waiters.removeAll { $0.isMet(state.lines) }
      return met.map(\.continuation)
    }
    for continuation in met { continuation.resume() }
  }

  func wait(until isMet: @escaping @Sendable ([String]) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isMetNow = state.withLock { state in
        if isMet(state.lines) { return true }
        state.waiters.append((isMet, continuation))
        return false
      }
      if isMetNow { continuation.resume() }
    }
  }

  func wait(for line: String) async { await wait { $0.contains(line) } }
}

/// Observes the notifications of one name about one object, until deinitialization.
final class Notified: @unchecked Sendable {
  private let token: any NSObjectProtocol

  init(
    _ name: NSNotification.Name, of object: AnyObject?, _ hear: @escaping @Sendable (Notification) -> Void
  ) {
    token = NotificationCenter.default.addObserver(forName: name, object: object, queue: nil, using: hear)
  }

  deinit { NotificationCenter.default.removeObserver(token) }
}
