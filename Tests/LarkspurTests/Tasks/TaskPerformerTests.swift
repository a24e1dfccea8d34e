import Foundation
import LarkspurTestServer
import LarkspurTransport
import Testing

@testable import Larkspur

@Suite struct TaskPerformerTests {
  /// Nobody tells a performer that its task does not have yet.
  @Test(.timeLimit(.minutes(1))) func aTaskIsResumedWhileItsPerformerIsMade() async throws {
    let server = try TestServer()
    let session = URLSession(configuration: .ephemeral)
    let url = try #require(URL(string: server.url("/bytes/1000")))
    let engine = try SessionEngine(session.configuration)
    let count: Int? = await withCheckedContinuation { continuation in
      let task = URLSessionDataTask(
        session.core, request: URLRequest(url: url),
        output: .dataHandler { data, _, _ in continuation.resume(returning: data?.count) })
      session.core.register(task, session)
      task.read { $0.hasBegun = true }
      let performer = TaskPerformer(task, of: session, core: session.core, engine: engine)
      task.resume()
      task.read { $0.performer = performer }
      engine.loop.perform(performer, asGuest: true)
    }
    #expect(count == 1000)
    engine.shutDown()
  }
}
