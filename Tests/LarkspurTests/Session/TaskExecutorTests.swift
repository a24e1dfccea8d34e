import Foundation
import Larkspur
import LarkspurTestServer
import LarkspurTransport
import Testing

/// Tests callers that prefer the session's loop as their executor.
@Suite(.timeLimit(.minutes(2))) struct TaskExecutorTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  private var isOnLoop: Bool { (session.taskExecutor as? ClientLoop)?.isPreferred == true }

  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  private var isOnMain: Bool { DispatchQueue.getSpecific(key: Self.mark) == true }

  /// A main-actor caller resumes on the main actor, however the load ends and whichever executor it prefers.
  @MainActor @Test(arguments: [false, true]) func anActorsCallerComesBackToIt(prefersLoop: Bool) async throws {
    #expect(isOnMain)
    let (url, closed) = (try url("/bytes/10"), try #require(URL(string: "http://127.0.0.1:1/")))
    try await withTaskExecutorPreference(prefersLoop ? session.taskExecutor : nil) { @MainActor in
      let (data, _) = try await session.data(from: url)
      #expect(isOnMain && data.count == 10)
      do {
        _ = try await session.data(from: closed)
      } catch {
        #expect(isOnMain && (error as? URLError)?.code == .cannotConnectToHost)
      }
      let task = Task { @MainActor in
        defer { #expect(isOnMain) }
        return try await session.data(from: url)
      }
      task.cancel()
      _ = await task.result
    }
  }

  /// A long series of loads with occasional slow ones, so that the loop parks and wakes repeatedly. Callers elsewhere
  /// get their responses throughout.
  @Test func oneAfterAnother() async throws {
    let (url, slow) = (try url("/bytes/10"), try url("/delay/10"))
    try await withTaskExecutorPreference(session.taskExecutor) {
      for index in 0..<1_500 {
        let (data, _) = try await session.data(from: index % 500 == 499 ? slow : url)
        #expect(data.count == 10 || index % 500 == 499)
        if index % 50 == 0 {
          let task = Task { try await session.data(from: url) }
          #expect(try await Task.detached { try await session.data(from: url) }.value.0.count == 10)
          #expect(try await task.value.0.count == 10)
        }
      }
    }
  }

  @Test func callsThatPreferTheLoopStayThere() async throws {
    let url = try url("/bytes/10")
    let file = try await withTaskExecutorPreference(session.taskExecutor) {
      for _ in 0..<3 {
        #expect(isOnLoop)
        let (data, response) = try await session.data(from: url)
        #expect(data.count == 10 && (response as? HTTPURLResponse)?.statusCode == 200)
      }
      #expect(isOnLoop)
      var count = 0
      for try await _ in try await session.bytes(from: url).0 { count += 1 }
      #expect(isOnLoop && count == 10)
      let (sent, _) = try await session.upload(for: URLRequest(url: url), from: Data())
      #expect(isOnLoop && sent.count == 10)
      let (file, _) = try await session.download(from: url)
      #expect(isOnLoop)
      return file
    }
    #expect(!isOnLoop)
    #expect(try Data(contentsOf: file).count == 10)
    try FileManager.default.removeItem(at: file)
  }

  @Test func childTasksAreThereToo() async throws {
    let url = try url("/bytes/10")
    let count = try await withTaskExecutorPreference(session.taskExecutor) {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<50 {
          group.addTask {
            let count = try await session.data(from: url).0.count
            return isOnLoop ? count : 0
          }
        }
        return try await group.reduce(0, +)
      }
    }
    #expect(count == 500)
  }

  @Test func failuresAreThrownThere() async throws {
    let mail = try #require(URL(string: "mailto:nobody"))
    await withTaskExecutorPreference(session.taskExecutor) {
      let error = await #expect(throws: URLError.self) { try await session.data(from: mail) }
      #expect(error?.code == .unsupportedURL && isOnLoop)
    }
  }

  @Test func cancellingTheCallerCancelsTheLoad() async throws {
    server.enqueue([.expectRequest, .expectClose])
    let url = try url("/never")
    let call = Task(executorPreference: session.taskExecutor) { try await session.data(from: url) }
    _ = try await server.waitForRequests(1)
    call.cancel()
    let error = await #expect(throws: URLError.self) { try await call.value }
    #expect(error?.code == .cancelled)
  }

  /// Loads from the cache complete without waiting, and still leave the loop time for other loads.
  @Test func loadsWithoutWaitingLeaveRoomForOthers() async throws {
    server.route("GET", "/kept") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .text("kept"))
    }
    let (kept, other) = (try url("/kept"), try url("/bytes/10"))
    let isOver = TestServer.Signal()
    let load = Task(executorPreference: session.taskExecutor) { [session] in
      while !isOver.hasFired { _ = try await session.data(from: kept) }
    }
    for _ in 0..<10 { _ = try await session.data(from: other) }
    isOver.fire()
    try await load.value
    #expect(server.requests.filter { $0.target == "/kept" }.count == 1)
  }

  /// Callers on each loop load by the sessions of all other loops at the same time, and resume on their own loop.
  @Test func loadsOfOtherLoopsComeBack() async throws {
    let url = try url("/bytes/10")
    let sessions = (0..<4).map { _ in URLSession(configuration: .ephemeral) }
    let count = try await withThrowingTaskGroup(of: Int.self) { group in
      for session in sessions {
        group.addTask(executorPreference: session.taskExecutor) {
          var count = 0
          for _ in 0..<20 {
            for other in sessions { count += try await other.data(from: url).0.count }
            let isBack = (session.taskExecutor as? ClientLoop)?.isPreferred
            #expect(isBack == true)
          }
          return count
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(count == 4 * 20 * 4 * 10)
  }

  /// A task that starts on the loop without preferring it resumes elsewhere.
  @Test func callsThatOnlyStartThereResumeElsewhere() async throws {
    let url = try url("/bytes/10")
    let call = await withTaskExecutorPreference(session.taskExecutor) {
      Task.immediateDetached {
        let count = try await session.data(from: url).0.count
        return isOnLoop ? 0 : count
      }
    }
    #expect(try await call.value == 10)
  }

  @Test func aClosedSessionHasNone() async throws {
    let url = try url("/get")
    let first = session.taskExecutor as AnyObject?
    #expect(first != nil && first === session.taskExecutor as AnyObject?)
    session.invalidateAndCancel()
    #expect(session.taskExecutor == nil)
    await withTaskExecutorPreference(session.taskExecutor) {
      let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
      #expect(error?.code == .cancelled)
    }
  }
}
