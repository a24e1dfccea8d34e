import Foundation
import Larkspur
import LarkspurTransport
import TestKit
import Testing

/// The time limits of the parts of a connection and of a transfer, with a server that is silent, slow or stuck in each of
/// them. Without the limit the server would hold the task for longer than the test may take.
@Suite(.ownThread, .timeLimit(.minutes(1))) struct TimeoutOptionTests {
  private let server: OptionServer

  init() throws { server = try OptionServer.get() }

  /// Expects that a limit ends a load, and that the error names the limit.
  private func expect(
    _ limit: Timeouts.Limit, ends url: String, body: Data? = nil, _ change: (inout Timeouts) -> Void
  ) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [:]
    change(&configuration.timeouts)
    var request = URLRequest(url: try #require(URL(string: url)))
    if let body {
      request.httpMethod = "POST"
      request.httpBody = body
    }
    let sent = request
    let error = await URLSession.withSession(configuration: configuration) { session in
      await #expect(throws: URLError.self) { try await session.data(for: sent) }
    }
    guard error?.code == .timedOut, case .timedOut(_, let passed)? = error?.transportError else {
      Issue.record("\(limit): \(String(describing: error))")
      return
    }
    #expect(passed == limit && error.map { "\($0)".contains(limit.rawValue) } == true)
  }

  private func url(_ path: String, port: Int? = nil) -> String { "http://127.0.0.1:\(port ?? server.port)\(path)" }

  /// More than the buffers of two sockets hold.
  private static let long = Data(count: 48 << 20)

  @Test func connecting() async throws {
    try await expect(.connect, ends: url("/", port: server.fullPort)) { $0.connect = .milliseconds(200) }
  }

  @Test func theHandshake() async throws {
    try await expect(.secure, ends: "https://127.0.0.1:\(server.silentPort)/") { $0.secure = .milliseconds(200) }
  }

  @Test func theFirstByte() async throws {
    try await expect(.firstByte, ends: url("/silent")) { $0.firstByte = .milliseconds(200) }
  }

  @Test func sending() async throws {
    try await expect(.send, ends: url("/stuck"), body: Self.long) { $0.send = .milliseconds(200) }
  }

  /// The server sends a byte each 10 ms, which resets every limit but this.
  @Test func theLowestRateOfReceiving() async throws {
    try await expect(.lowestRate, ends: url("/trickle")) {
      $0.lowestRate = Timeouts.LowestRate(bytes: 1_000, over: .milliseconds(200))
    }
  }

  @Test func theLowestRateOfSending() async throws {
    try await expect(.lowestRate, ends: url("/stuck"), body: Self.long) {
      $0.lowestRate = Timeouts.LowestRate(bytes: 1_000, over: .milliseconds(200))
    }
  }
}
