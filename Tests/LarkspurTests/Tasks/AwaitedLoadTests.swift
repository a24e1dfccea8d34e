import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// An awaited load has a `URLSessionTask` only once the program asks for the session's tasks. The task then shows the
/// state of the load, and can cancel and suspend it.
@Suite(.timeLimit(.minutes(2))) struct AwaitedLoadTests {
  let server: TestServer
  let session: URLSession

  init() throws {
    server = try TestServer()
    session = URLSession(configuration: .ephemeral)
  }

  private func request(_ path: String = "/") throws -> URLRequest {
    URLRequest(url: try #require(URL(string: server.url(path))))
  }

  private static func answer(_ body: String) -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  private typealias Load = Task<(Data, URLResponse), any Error>

  /// Starts a load whose request has reached the server over a reused connection. The server answers it after
  /// `mayAnswer` has fired.
  private func start(onLoop: Bool, answer: TestServer.Script, _ mayAnswer: TestServer.Signal) async throws -> Load {
    let hasCome = TestServer.Signal()
    server.enqueue(
      [.expectRequest, .send(Self.answer("first")), .expectRequest, .fire(hasCome), .wait(mayAnswer)] + answer)
    let (session, request) = (session, try request())
    #expect(try await session.data(for: request).0 == Data("first".utf8))
    let load = Load(executorPreference: onLoop ? session.taskExecutor : nil) { try await session.data(for: request) }
    try await hasCome.wait()
    return load
  }

  private static let ok: TestServer.Script = [.send(answer("ok")), .hang]

  private func onlyTask() async throws -> URLSessionTask {
    let tasks = await session.allTasks
    #expect(tasks.count == 1)
    return try #require(tasks.first)
  }

  @Test(arguments: [true, false]) func itsTaskShowsHowItStands(onLoop: Bool) async throws {
    let mayAnswer = TestServer.Signal()
    let load = try await start(onLoop: onLoop, answer: Self.ok, mayAnswer)
    let task = try await onlyTask()
    #expect(type(of: task) == URLSessionDataTask.self)
    #expect(try await onlyTask() === task)
    #expect(task.state == .running && task.response == nil && task.error == nil)
    let request = try request()
    #expect(task.originalRequest == request && task.currentRequest == request)
    #expect(task.countOfBytesExpectedToSend == 0)
    task.resume()
    mayAnswer.fire()
    let (data, response) = try await load.value
    #expect(data == Data("ok".utf8))
    #expect(task.state == .completed && task.response === response && task.error == nil)
    #expect(task.countOfBytesReceived == 2 && task.countOfBytesExpectedToReceive == 2)
    #expect(await session.allTasks.isEmpty)
  }

  /// The task stays the same object while the body of the response is still arriving.
  @Test(arguments: [true, false]) func itsTaskStaysTheSame(onLoop: Bool) async throws {
    let (mayAnswer, isHalf, mayEnd) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    let load = try await start(
      onLoop: onLoop,
      answer: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), .fire(isHalf), .wait(mayEnd), .send("k"), .hang,
      ], mayAnswer)
    let task = try await onlyTask()
    mayAnswer.fire()
    try await isHalf.wait()
    await Wait.until("a byte is received") { task.countOfBytesReceived == 1 }
    #expect(try await onlyTask() === task)
    #expect((task.response as? HTTPURLResponse)?.statusCode == 200 && task.state == .running)
    mayEnd.fire()
    #expect(try await load.value.0 == Data("ok".utf8))
    #expect(task.state == .completed && task.countOfBytesReceived == 2)
  }

  @Test(arguments: [true, false]) func itsTaskIsCancelled(onLoop: Bool) async throws {
    let mayAnswer = TestServer.Signal()
    let load = try await start(onLoop: onLoop, answer: [.hang], mayAnswer)
    let task = try await onlyTask()
    task.cancel()
    let error = await #expect(throws: URLError.self) { try await load.value }
    #expect(error?.code == .cancelled && (task.error as? URLError)?.code == .cancelled)
    #expect(task.state == .completed)
    #expect(await session.allTasks.isEmpty)
  }

  @Test(arguments: [true, false]) func itsTaskIsSuspended(onLoop: Bool) async throws {
    let mayAnswer = TestServer.Signal()
    let load = try await start(onLoop: onLoop, answer: Self.ok, mayAnswer)
    let task = try await onlyTask()
    task.suspend()
    mayAnswer.fire()
    server.enqueue([.expectRequest, .send(Self.answer("other")), .hang])
    // Another load completes meanwhile.
    #expect(try await session.data(for: request()).0 == Data("other".utf8))
    #expect(task.state == .suspended && task.countOfBytesReceived == 0)
    task.resume()
    #expect(try await load.value.0 == Data("ok".utf8))
    #expect(task.state == .completed)
  }

  /// Invalidating a session cancels its awaited loads, with or without a task object.
  @Test(arguments: [true, false], [true, false]) func theSessionCancelsThem(onLoop: Bool, isSeen: Bool) async throws {
    let mayAnswer = TestServer.Signal()
    let load = try await start(onLoop: onLoop, answer: [.hang], mayAnswer)
    let task = isSeen ? try await onlyTask() : nil
    session.invalidateAndCancel()
    let error = await #expect(throws: URLError.self) { try await load.value }
    #expect(error?.code == .cancelled)
    #expect(task == nil || task?.state == .completed)
    let refused = await #expect(throws: URLError.self) { try await session.data(for: request()) }
    #expect(refused?.code == .cancelled)
  }

  @Test(arguments: [true, false]) func theirTimeIsUp(onLoop: Bool) async throws {
    server.enqueue([.expectRequest, .send(Self.answer("first")), .expectRequest, .hang])
    let session = session
    var request = try request()
    #expect(try await session.data(for: request).0 == Data("first".utf8))
    request.timeoutInterval = 0.1
    let slow = request
    let load = Load(executorPreference: onLoop ? session.taskExecutor : nil) { try await session.data(for: slow) }
    let error = await #expect(throws: URLError.self) { try await load.value }
    #expect(error?.code == .timedOut)
    #expect(await session.allTasks.isEmpty)
  }

  /// Listing, cancelling and suspending many loads at random leaves each with one result, and no load behind.
  @Test func manyAreSeen() async throws {
    server.route("GET", "/") { _ in .text("ok") }
    let (session, request) = (session, try request())
    let ends = try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<8 {
        group.addTask(executorPreference: index % 2 == 0 ? session.taskExecutor : nil) {
          var ends = 0
          for _ in 0..<50 {
            do {
              let (data, _) = try await session.data(for: request)
              #expect(data == Data("ok".utf8))
            } catch {
              #expect((error as? URLError)?.code == .cancelled)
            }
            ends += 1
          }
          return ends
        }
      }
      group.addTask {
        for round in 0..<100 {
          let tasks = await session.allTasks
          #expect(Set(tasks.map(\.taskIdentifier)).count == tasks.count)
          for task in tasks {
            switch round % 3 {
            case 0: task.cancel()
            case 1:
              task.suspend()
              task.resume()
            default: #expect(task.state != .suspended)
            }
          }
          await Task.yield()
        }
        return 0
      }
      return try await group.reduce(0, +)
    }
    #expect(ends == 400)
    #expect(await session.allTasks.isEmpty)
  }
}
