import Foundation
import Larkspur
import TestKit
import Testing

/// Upper limits of rates, with a server that sends and takes as fast as the client. A limit is a lower bound of a time, which
/// no slow machine falls below.
@Suite(.ownThread, .timeLimit(.minutes(1))) struct RateOptionTests {
  private let server: OptionServer
  private static let byteCount = 400_000

  init() throws { server = try OptionServer.get() }

  /// Returns the time that a load takes in a session with limits.
  private func time(
    _ limits: (inout URLSessionConfiguration.RateLimits) -> Void, _ load: (URLSession) async throws -> Void
  ) async throws -> Duration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [:]
    limits(&configuration.rateLimits)
    return try await URLSession.withSession(configuration: configuration) { session in
      try await ContinuousClock().measure { try await load(session) }
    }
  }

  /// The time of the bytes without a burst, which is a tenth of a second's, and without the last piece.
  private static let bytesTimeMin = Duration.milliseconds(400 - 100 - 100)

  @Test func receivedBytes() async throws {
    let time = try await time({ $0.bytesPerSecond = 1_000_000 }) {
      let (_, data, _) = try await $0.load(server.url("/bytes/\(Self.byteCount)"))
      #expect(data.count == Self.byteCount)
    }
    #expect(time >= Self.bytesTimeMin)
  }

  @Test func sentBytes() async throws {
    var request = URLRequest(url: try server.url("/echo"))
    request.httpMethod = "POST"
    request.httpBody = Data(OptionServer.content(Self.byteCount))
    let sent = request
    let time = try await time({ $0.bytesPerSecondPerHost = 1_000_000 }) {
      let report = try OptionServer.Report(try await $0.load(sent).data)
      #expect(report.content == Self.byteCount && report.isRight)
    }
    #expect(time >= Self.bytesTimeMin)
  }

  /// The first of six requests leaves at once, and each further one 50 ms after the one before.
  @Test func requests() async throws {
    let url = try server.url("/bytes/10")
    let time = try await time({ $0.requestsPerSecondPerHost = 20 }) { session in
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<6 { group.addTask { try await session.load(url).status } }
        for try await status in group { #expect(status == 200) }
      }
    }
    #expect(time >= .milliseconds(5 * 50 - 1))
  }
}
