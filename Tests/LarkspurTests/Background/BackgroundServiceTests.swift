import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Tests programs whose background sessions the transfer service carries out.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BackgroundServiceTests {
  let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private static let size = 200_000

  /// A download ends while its program does not run, and the next start of the program has the file.
  @Test(.ownThread) func theServiceGoesOnWithoutTheProgram() async throws {
    defer { fixture.stopService() }
    _ = try fixture.file("ends", "")
    let (asked, signal) = (TestServer.Signal(), TestServer.Signal())
    fixture.server.enqueue([
      .expectRequest, .fire(asked), .wait(signal),
      .respond(TestServer.Response(body: .content(0..<Self.size))), .hang,
    ])
    let tasks = [(kind: "get", path: "/file", name: "download")]
    let first = try fixture.program(tasks, environment: fixture.serviceEnvironment())
    #expect(first.wait(for: "begun"))
    try await asked.wait()
    first.kill()
    signal.fire()
    let folder = fixture.folder
    // The record says that the task is complete, and has its events.
    let fixture = fixture
    await Wait.until("the task has ended") { fixture.hasEnded(1) }
    _ = try fixture.program(tasks, environment: fixture.serviceEnvironment()).text()
    #expect(try Data(contentsOf: folder.appending(path: "download")) == Data(TestServer.content(count: Self.size)))
    #expect(try fixture.ends() == ["download 0"])
    #expect(fixture.server.requestsReceived == 1)
  }

  /// A service that does not answer does not hold up the thread that makes a session. The tasks of earlier processes, and
  /// new ones, go on when it answers.
  @Test(.ownThread) func aStoppedServiceIsWaitedFor() async throws {
    defer { fixture.stopService() }
    let signal = try await hangingService()
    let tasks = [(kind: "get", path: "/file", name: "download"), (kind: "get", path: "/other", name: "other")]
    fixture.server.route("GET", "/other") { _ in .text("other") }
    let second = try fixture.program(tasks, environment: fixture.serviceEnvironment())
    #expect(second.wait(for: "made"))
    signalService(SIGCONT)
    signal.fire()
    _ = try second.text()
    #expect(try Set(fixture.ends()) == ["download 0", "other 0"])
    #expect(try String(contentsOf: fixture.folder.appending(path: "other"), encoding: .utf8) == "other")
    #expect(Set(fixture.server.requests.map(\.target)) == ["/file", "/other"])
    #expect(fixture.server.requestsReceived == 2)
  }

  /// A session that is to end with its last task waits for the tasks of earlier processes.
  @Test(.ownThread) func aStoppedServiceHasTasks() async throws {
    defer { fixture.stopService() }
    let signal = try await hangingService()
    let second = try fixture.program(
      [(kind: "finish", path: "/", name: "-")], environment: fixture.serviceEnvironment())
    #expect(second.wait(for: "made"))
    signalService(SIGCONT)
    signal.fire()
    _ = try second.text()
    #expect(try fixture.ends() == ["download 0"])
  }

  /// A service that never answers: the tasks of the session end with an error that says why.
  @Test(.ownThread) func aServiceThatNeverAnswers() async throws {
    defer { fixture.stopService() }
    _ = try await hangingService()
    let second = try fixture.program(
      [(kind: "get", path: "/file", name: "again")], environment: fixture.serviceEnvironment())
    _ = try second.text()
    #expect(try fixture.ends() == ["again \(URLError.Code.backgroundSessionWasDisconnected.rawValue)"])
  }

  /// Begins a download whose program is killed, and stops the service while it waits for the response.
  ///
  /// - Returns: The signal for the response.
  private func hangingService() async throws -> TestServer.Signal {
    _ = try fixture.file("ends", "")
    let (asked, signal) = (TestServer.Signal(), TestServer.Signal())
    fixture.server.enqueue([
      .expectRequest, .fire(asked), .wait(signal), .respond(TestServer.Response(body: .content(0..<Self.size))),
      .serveRoutes,
    ])
    let first = try fixture.program(
      [(kind: "get", path: "/file", name: "download")], environment: fixture.serviceEnvironment())
    #expect(first.wait(for: "begun"))
    try await asked.wait()
    first.kill()
    signalService(SIGSTOP)
    // Another program makes tasks again.
    try FileManager.default.removeItem(at: fixture.folder.appending(path: "begun"))
    return signal
  }

  private func signalService(_ signal: Int32) {
    guard let service = TransferServiceProcess.find(runtimeDirectory: fixture.folder.path) else {
      Issue.record("there is no service")
      return
    }
    kill(service, signal)
  }
}
