import Foundation
import LarkspurTestServer
import LarkspurTransport
import Testing

@testable import Larkspur

@Suite struct LoadTests {
  /// A task that is resumed before its load is attached still starts.
  @Test(.timeLimit(.minutes(1))) func aTaskIsResumedWhileItsTransferIsMade() async throws {
    let server = try TestServer()
    let session = URLSession(configuration: .ephemeral)
    let url = try #require(URL(string: server.url("/bytes/1000")))
    let engine = try SessionEngine(session.configuration)
    let count: Int? = await withCheckedContinuation { continuation in
      let task = URLSessionDataTask(
        session.core, request: URLRequest(url: url),
        output: .dataHandler { data, _, _ in continuation.resume(returning: data?.count) })
      session.core.register(task, session)
      task.read { $0.hasStarted = true }
      let load = Load(
        of: task, URLRequest(url: url), identifier: task.taskIdentifier, session, engine, isWatched: false)
      task.resume()
      task.read { $0.load = load }
      engine.loop.submit(load, inline: true)
    }
    #expect(count == 1000)
    engine.shutDown()
  }
}
