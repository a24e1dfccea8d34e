import AFNetworking
import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests managers of background sessions, as the articles on AFNetworking use them.
@Suite(.timeLimit(.minutes(2))) struct ManagerBackgroundTests {
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

    let configuration = URLSessionConfiguration.background(withIdentifier: "transfers")
    configuration.transferStateHome = folder.path
    configuration.sharedContainerIdentifier = "tests"
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
}
