import AFNetworking
import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests managers of background sessions, as the articles on AFNetworking use them.
@Suite(.timeLimit(.minutes(2))) struct ManagerBackgroundTests {
  private static func configuration(in directory: TemporaryDirectory) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.background(withIdentifier: "transfers")
    configuration.transferStateHome = directory.url.path
    configuration.sharedContainerIdentifier = "tests"
    return configuration
  }

  /// A manager finds the download of a program that was killed, and calls its blocks for it.
  @Test(.ownThread) func aManagerFindsTheTasksOfItsSession() async throws {
    let server = try TestServer()
    let directory = try TemporaryDirectory()
    let folder = directory.url
    let (signal, asked, examined) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    server.enqueue([.expectRequest, .fire(asked), .wait(signal), .close])
    server.enqueue([.expectRequest, .wait(examined), .respond(.text("content"))])
    let program = try SiblingProcess(
      "background-session", [folder.path, folder.path, "get", server.url("/file"), "mine"])
    try await asked.wait()
    program.kill()
    signal.fire()

    let configuration = Self.configuration(in: directory)
    let manager = AFURLSessionManager(sessionConfiguration: configuration)
    let lines = Mutex<[String]>([])
    let isOver = TestServer.Signal()
    let target = folder.appending(path: "target")
    manager.setDownloadTaskDidFinishDownloadingBlock { _, task, _ in
      lines.withLock { $0.append("finished \(task.taskDescription ?? "")") }
      return target
    }
    manager.setTaskDidComplete { _, task, error in
      lines.withLock { $0.append("completed \(error == nil)") }
      isOver.fire()
    }
    // The task is there at once, and its progress is that of the session.
    let found = manager.downloadTasks
    #expect(found.map(\.taskDescription) == ["mine"] && found == manager.tasks)
    #expect(found.first.flatMap { manager.downloadProgress(for: $0) }?.totalUnitCount == -1)
    #expect(manager.session.configuration.identifier == "transfers")
    examined.fire()
    try await isOver.wait()
    #expect(lines.withLock { $0 } == ["finished mine", "completed true"])
    #expect(try String(contentsOf: target, encoding: .utf8) == "content")
    manager.invalidateSessionCancelingTasks(true, resetSession: false)
  }

  /// A manager that reports when its session has called it for a file.
  private final class Called: AFURLSessionManager, @unchecked Sendable {
    let hasBeenCalled = TestServer.Signal()

    override func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
      super.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
      hasBeenCalled.fire()
    }
  }

  /// The file of a complete download waits for its block: in the manager, and beyond it.
  @Test(.ownThread) func aFileWaitsForItsBlock() async throws {
    let server = try TestServer()
    let directory = try TemporaryDirectory()
    server.route("GET", "/file") { _ in .text("content") }
    let configuration = Self.configuration(in: directory)

    let first = Called(sessionConfiguration: configuration)
    let isInvalid = TestServer.Signal()
    first.setSessionDidBecomeInvalidBlock { _, _ in isInvalid.fire() }
    let url = try #require(URL(string: server.url("/file")))
    first.downloadTask(with: URLRequest(url: url), completionHandler: nil).resume()
    try await first.hasBeenCalled.wait()
    first.invalidateSessionCancelingTasks(false, resetSession: false)
    try await isInvalid.wait()

    let second = Called(sessionConfiguration: configuration)
    let (isOver, isFinished) = (TestServer.Signal(), TestServer.Signal())
    second.setTaskDidComplete { _, _, error in if error == nil { isOver.fire() } }
    try await second.hasBeenCalled.wait()
    #expect(!isOver.hasFired)
    let target = directory.url.appending(path: "target")
    second.setDidFinishEventsForBackgroundURLSessionBlock { _ in isFinished.fire() }
    second.setDownloadTaskDidFinishDownloadingBlock { _, _, _ in target }
    try await isOver.wait()
    #expect(try String(contentsOf: target, encoding: .utf8) == "content")
    try await isFinished.wait()
    second.invalidateSessionCancelingTasks(true, resetSession: false)
  }

  /// A task with a handler ends without a block: the program has asked for nothing but its end.
  @Test(.ownThread) func aHandlerIsCalledWithoutABlock() async throws {
    let server = try TestServer()
    let directory = try TemporaryDirectory()
    server.route("GET", "/file") { _ in .text("content") }
    let configuration = Self.configuration(in: directory)
    let manager = AFURLSessionManager(sessionConfiguration: configuration)
    manager.completionQueue = DispatchQueue(label: "completion")
    let url = try #require(URL(string: server.url("/file")))
    let isOver = TestServer.Signal()
    manager.downloadTask(with: URLRequest(url: url)) { _, file, error in
      if file == nil, error == nil { isOver.fire() }
    }.resume()
    try await isOver.wait()
    manager.invalidateSessionCancelingTasks(true, resetSession: false)
  }
}
