import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests programs whose background sessions the transfer service carries out.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BackgroundServiceTests {
  let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private static let size = 200_000

  private func environment() throws -> [String: String] { try fixture.serviceEnvironment() }

  private func stopService() { fixture.stopService() }

  /// A download ends while its program does not run, and the next start of the program has the file.
  @Test(.ownThread) func theServiceGoesOnWithoutTheProgram() async throws {
    defer { stopService() }
    _ = try fixture.file("ends", "")
    let (asked, signal) = (TestServer.Signal(), TestServer.Signal())
    fixture.server.enqueue([
      .expectRequest, .fire(asked), .wait(signal),
      .respond(TestServer.Response(body: .content(0..<Self.size))), .hang,
    ])
    let tasks = [(kind: "get", path: "/file", name: "download")]
    let first = try fixture.program(tasks, environment: environment())
    #expect(first.wait(for: "begun"))
    try await asked.wait()
    first.kill()
    signal.fire()
    let folder = fixture.folder
    // The record says that the task is complete, and has its events.
    let fixture = fixture
    await eventually { fixture.hasEnded(1) }
    _ = try fixture.program(tasks, environment: environment()).text()
    #expect(try Data(contentsOf: folder.appending(path: "download")) == Data(TestServer.content(count: Self.size)))
    #expect(try fixture.ends() == ["download 0"])
    #expect(fixture.server.requestsReceived == 1)
  }

  /// Programs and the service are killed at random moments, one of them or both.
  @Test(.ownThread) func bothAreKilledAtAnyMoment() async throws {
    defer { stopService() }
    var generator = SeededGenerator(for: "programs and services killed")
    _ = try fixture.file("ends", "")
    for path in ["/a", "/b", "/c"] { fixture.serve(path, count: Self.size) }
    let tasks = ["a", "b", "c"].map { (kind: "get", path: "/\($0)", name: "file-\($0)") }
    let first = try fixture.program(tasks, environment: environment())
    #expect(first.wait(for: "begun"))
    first.kill()
    for _ in 0..<20 {
      let program = try fixture.program(tasks, environment: environment())
      if Bool.random(using: &generator) {
        _ = program.read(lines: Int.random(in: 1...6, using: &generator))
      } else {
        for _ in 0..<Int.random(in: 0..<50_000, using: &generator) { await Task.yield() }
      }
      if Bool.random(using: &generator) { stopService() }
      program.kill()
    }
    _ = try fixture.program(tasks, environment: environment()).text()
    for name in ["file-a", "file-b", "file-c"] {
      let content = try Data(contentsOf: fixture.folder.appending(path: name))
      #expect(content == Data(TestServer.content(count: Self.size)))
    }
    #expect(Set(try fixture.ends()) == ["file-a 0", "file-b 0", "file-c 0"])
  }
}
