import Foundation
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// The time limit of looking up a name, on a machine whose name server never answers.
@Suite(.timeLimit(.minutes(1)), .ownThread, .ownProcess) struct SilentNamesTests {
  @Test func theTimeForLookingUpAName() async throws {
    let machine = try Namespace()
    try machine.setFile("/etc/resolv.conf", to: "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
    let server = try machine.run { try PythonServer("Tests/LivePeers/option_server.py", ["names"]) }
    let loop = try machine.run { try ClientLoop() }
    defer { loop.stop() }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [:]
    configuration.storage.loop = loop
    configuration.timeouts.resolve = .milliseconds(200)
    let url = try #require(URL(string: "http://a.example:\(server.port)/"))
    let error = await URLSession.withSession(configuration: configuration) { session in
      await #expect(throws: URLError.self) { try await session.data(from: url) }
    }
    #expect(error?.transportError == .timedOut(.resolving, limit: .resolve))
  }
}
