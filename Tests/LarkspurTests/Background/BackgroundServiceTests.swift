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
    await eventually { fixture.hasEnded(1) }
    _ = try fixture.program(tasks, environment: fixture.serviceEnvironment()).text()
    #expect(try Data(contentsOf: folder.appending(path: "download")) == Data(TestServer.content(count: Self.size)))
    #expect(try fixture.ends() == ["download 0"])
    #expect(fixture.server.requestsReceived == 1)
  }
}
