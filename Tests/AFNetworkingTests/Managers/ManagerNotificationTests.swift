import AFNetworking
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import AFNetworking

/// Tests the notifications that managers post.
@Suite struct ManagerNotificationTests {
  let fixture: ManagerFixture
  var manager: AFHTTPSessionManager { fixture.manager }

  init() throws { fixture = try ManagerFixture() }

  @Test func names() {
    typealias Name = NSNotification.Name
    #expect(Name.AFNetworkingTaskDidResume.rawValue == "com.alamofire.networking.task.resume")
    #expect(Name.AFNetworkingTaskDidSuspend.rawValue == "com.alamofire.networking.task.suspend")
    #expect(Name.AFNetworkingTaskDidComplete.rawValue == "com.alamofire.networking.task.complete")
    #expect(Name.AFURLSessionDidInvalidate.rawValue == "com.alamofire.networking.session.invalidate")
    #expect(
      Name.AFURLSessionDownloadTaskDidMoveFileSuccessfully.rawValue
        == "com.alamofire.networking.session.download.file-manager-succeed")
    #expect(
      Name.AFURLSessionDownloadTaskDidFailToMoveFile.rawValue
        == "com.alamofire.networking.session.download.file-manager-error")
    #expect(
      AFNetworkingTaskDidCompleteSerializedResponseKey == "com.alamofire.networking.task.complete.serializedresponse")
    #expect(
      AFNetworkingTaskDidCompleteResponseSerializerKey == "com.alamofire.networking.task.complete.responseserializer")
    #expect(AFNetworkingTaskDidCompleteResponseDataKey == "com.alamofire.networking.complete.finish.responsedata")
    #expect(AFNetworkingTaskDidCompleteErrorKey == "com.alamofire.networking.task.complete.error")
    #expect(AFNetworkingTaskDidCompleteAssetPathKey == "com.alamofire.networking.task.complete.assetpath")
    #expect(AFNetworkingTaskDidCompleteSessionTaskMetrics == "com.alamofire.networking.complete.sessiontaskmetrics")
  }

  enum Kind: CaseIterable, Sendable { case data, upload, download }

  private func task(_ kind: Kind, of manager: AFURLSessionManager, _ request: URLRequest) -> URLSessionTask {
    switch kind {
    case .data: manager.dataTask(with: request, completionHandler: nil)
    case .upload: manager.uploadTask(with: request, from: Data(), completionHandler: nil)
    case .download: manager.downloadTask(with: request, completionHandler: nil)
    }
  }

  /// Resuming and suspending is notified for every kind of task, in ordinary and background sessions.
  @Test(arguments: Kind.allCases, [false, true])
  func tasksThatRunAndStandStill(kind: Kind, inBackground: Bool) async throws {
    let configuration =
      inBackground ? URLSessionConfiguration.background(withIdentifier: UUID().uuidString) : .ephemeral
    let state = FileManager.default.temporaryDirectory.appending(path: "larkspur-state-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: state, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: state) }
    configuration.transferStateHome = state.path
    let manager = AFURLSessionManager(sessionConfiguration: configuration)
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .close])
    let task = task(kind, of: manager, try fixture.request("/slow"))
    let journal = Journal()
    let observers = [
      Notified(.AFNetworkingTaskDidResume, of: task) { _ in journal.note("resume \(MainQueue.isCurrent)") },
      Notified(.AFNetworkingTaskDidSuspend, of: task) { _ in journal.note("suspend \(MainQueue.isCurrent)") },
    ]
    task.resume()
    task.suspend()
    task.resume()
    task.resume()
    await journal.wait { $0.count == 3 }
    #expect(journal.lines == ["resume true", "suspend true", "resume true"])
    task.cancel()
    signal.fire()
    withExtendedLifetime(observers) {}
  }

  /// The notification of a task's completion follows the task's completion handler and has all values in its
  /// `userInfo`.
  @Test func tasksThatAreOver() async throws {
    let journal = Journal()
    let info = Mutex<[String]>([])
    let task = manager.dataTask(with: try fixture.request("/status/200")) { _, _, _ in journal.note("handler") }
    let manager = manager
    let observer = Notified(.AFNetworkingTaskDidComplete, of: task) { notification in
      let user = notification.userInfo ?? [:]
      info.withLock { info in
        info = user.keys.map { "\($0)" }.sorted()
        let object = user[AFNetworkingTaskDidCompleteSerializedResponseKey] as? [String: Any]
        info.append("\(object?["status"] ?? "none")")
        info.append("\((user[AFNetworkingTaskDidCompleteResponseDataKey] as? Data)?.isEmpty == false)")
        let serializer = user[AFNetworkingTaskDidCompleteResponseSerializerKey] as AnyObject?
        info.append("\(serializer === manager.responseSerializer)")
        let metrics = user[AFNetworkingTaskDidCompleteSessionTaskMetrics] as? URLSessionTaskMetrics
        info.append("\(metrics?.transactionMetrics.count ?? 0)")
      }
      journal.note(MainQueue.isCurrent ? "notification" : "another queue")
    }
    task.resume()
    await journal.wait { $0.count == 2 }
    #expect(journal.lines == ["handler", "notification"])
    #expect(
      info.withLock { $0 } == [
        AFNetworkingTaskDidCompleteResponseDataKey, AFNetworkingTaskDidCompleteSessionTaskMetrics,
        AFNetworkingTaskDidCompleteResponseSerializerKey, AFNetworkingTaskDidCompleteSerializedResponseKey,
        "200", "true", "true", "1",
      ])
    withExtendedLifetime(observer) {}
  }

  @Test func tasksThatHaveFailed() async throws {
    for path in ["/status/500", "/reset"] {
      fixture.server.route("GET", "/reset", script: [.reset])
      let journal = Journal()
      let task = manager.dataTask(with: try fixture.request(path), completionHandler: nil)
      let observer = Notified(.AFNetworkingTaskDidComplete, of: task) { notification in
        let error = notification.userInfo?[AFNetworkingTaskDidCompleteErrorKey] as? NSError
        journal.note(error?.domain ?? "no error")
      }
      task.resume()
      await journal.wait { $0.count == 1 }
      #expect(journal.lines == [path == "/reset" ? NSURLErrorDomain : AFURLResponseSerializationErrorDomain])
      withExtendedLifetime(observer) {}
    }
  }

  @Test func downloads() async throws {
    let (journal, directory) = (Journal(), try TemporaryDirectory())
    let file = directory.file("loaded")
    let task = manager.downloadTask(
      with: try fixture.request("/bytes/100"), destination: { _, _ in file }, completionHandler: nil)
    let observers = [
      Notified(.AFURLSessionDownloadTaskDidMoveFileSuccessfully, of: task) { _ in journal.note("moved") },
      Notified(.AFNetworkingTaskDidComplete, of: task) { notification in
        let path = notification.userInfo?[AFNetworkingTaskDidCompleteAssetPathKey] as? URL
        let data = notification.userInfo?[AFNetworkingTaskDidCompleteResponseDataKey]
        journal.note(path == file && data == nil ? "path" : "no path")
      },
    ]
    task.resume()
    await journal.wait { $0.count == 2 }
    #expect(journal.lines == ["moved", "path"])
    withExtendedLifetime(observers) {}
  }

  /// A task's notifications on the main queue come before and after its completion handler, however fast the task is.
  @Test(arguments: [false, true]) func orderAroundHandlersOnTheMainQueue(isQueueSet: Bool) async throws {
    if isQueueSet { manager.completionQueue = .main }
    let journal = Journal()
    for count in 1...10 {
      let task = manager.dataTask(with: try fixture.request("/status/200")) { _, _, _ in journal.note("handler") }
      let observers = [
        Notified(.AFNetworkingTaskDidResume, of: task) { _ in journal.note("resume") },
        Notified(.AFNetworkingTaskDidComplete, of: task) { _ in journal.note("complete") },
      ]
      task.resume()
      await journal.wait { $0.count == 3 * count }
      #expect(journal.lines.suffix(3) == ["resume", "handler", "complete"])
      withExtendedLifetime(observers) {}
    }
  }

  // MARK: - Delivery on the main queue

  /// An outbox whose clock only the test advances, and whose blocks run only on `serve()`.
  private final class Post: Sendable {
    private struct State {
      var now: UInt64 = 1_000_000_000
      var moments: [UInt64?] = []
      var blocks: [@Sendable () -> Void] = []
      var number = 0
    }

    private final class World: Sendable {
      let state = Mutex(State())
    }

    private let world = World()
    let journal = Journal()
    let outbox: NotificationOutbox
    private let name = NSNotification.Name(UUID().uuidString)
    private let task: URLSessionTask
    private let observer: Notified

    init(max: Int = NotificationOutbox.waitingMax) throws {
      task = URLSession.shared.dataTask(with: try #require(URL(string: "http://localhost/")))
      observer = Notified(name, of: task) { [journal] in journal.note("\($0.userInfo?["number"] ?? "none")") }
      outbox = NotificationOutbox(max: max, bytesMax: 100, now: { [world] in world.state.withLock { $0.now } }) {
        [world] moment, block in
        world.state.withLock {
          $0.moments.append(moment)
          $0.blocks.append(block)
        }
      }
    }

    func post(_ count: Int, keeping byteCount: Int = 0) {
      for _ in 0..<count {
        let number = world.state.withLock { state in
          state.number += 1
          return state.number
        }
        outbox.post(name, task, keeping: byteCount) { ["number": number] }
      }
    }

    /// Runs the blocks that wait for the main queue.
    func serve() {
      let blocks = world.state.withLock { state in
        defer { state.blocks = [] }
        return state.blocks
      }
      for block in blocks { block() }
    }

    func pass(_ nanoseconds: UInt64) { world.state.withLock { $0.now += nanoseconds } }

    var now: UInt64 { world.state.withLock { $0.now } }

    /// The times at which blocks were requested since the last call; `nil` stands for at once.
    var moments: [UInt64?] {
      world.state.withLock { state in
        defer { state.moments = [] }
        return state.moments
      }
    }
  }

  /// Waiting notifications are posted in order by one block. Beyond the limit the oldest are dropped.
  @Test func aMainThreadThatDoesNotServeItsQueue() throws {
    let post = try Post(max: 3)
    post.post(3)
    #expect(post.moments == [nil])
    post.serve()
    #expect(post.journal.lines == ["1", "2", "3"])
    post.pass(NotificationOutbox.pauseNanoseconds)
    post.post(4)
    #expect(post.moments == [nil])
    post.serve()
    #expect(post.journal.lines == ["1", "2", "3", "5", "6", "7"])
    #expect(NotificationOutbox.waitingMax == 4096)
  }

  /// The bytes that notifications keep are limited, too, but the latest notification is never dropped.
  @Test func postsThatKeepMuch() throws {
    let post = try Post(max: 100)
    post.post(3, keeping: 40)
    post.serve()
    #expect(post.journal.lines == ["2", "3"])
    post.post(1, keeping: 1_000)
    post.post(1, keeping: 1_000)
    post.serve()
    #expect(post.journal.lines == ["2", "3", "5"])
  }

  /// Notifications posted on the main queue need no block, and follow those posted before.
  @Test func postsOfTheMainQueueItself() throws {
    let post = try Post()
    post.post(1)
    #expect(post.moments == [nil])
    post.outbox.batching {
      post.post(2)
      post.journal.note("within")
    }
    #expect(post.journal.lines == ["1", "within", "2", "3"])
    post.serve()
    #expect(post.journal.lines.count == 4)
    #expect(post.moments.isEmpty)
    post.pass(NotificationOutbox.pauseNanoseconds)
    post.post(1)
    #expect(post.moments == [nil])
  }

  /// The main thread is woken at most once in 5 ms (`pauseNanoseconds`): later notifications wait for the end of this
  /// pause.
  @Test func postsThatFollowOneAnother() throws {
    #expect(NotificationOutbox.pauseNanoseconds == 5_000_000)
    let post = try Post()
    post.post(1)
    post.serve()
    let served = post.now
    #expect(post.moments == [nil])
    post.pass(NotificationOutbox.pauseNanoseconds - 1)
    post.post(2)
    #expect(post.moments == [served + NotificationOutbox.pauseNanoseconds])
    #expect(post.journal.lines == ["1"])
    // Work on the main queue posts the waiting notifications at once, and no second block is requested for the next
    // one.
    post.outbox.batching {}
    #expect(post.journal.lines == ["1", "2", "3"])
    post.post(1)
    #expect(post.moments.isEmpty)
    post.serve()
    #expect(post.journal.lines == ["1", "2", "3", "4"])
    post.pass(NotificationOutbox.pauseNanoseconds)
    post.post(1)
    #expect(post.moments == [nil])
  }
}
