import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Downloads in pieces from nginx.
@Suite(.serialized, .ownThread) struct NginxDownloadTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func download(_ server: SessionServer, _ change: (inout DownloadPlan) -> Void = { _ in }) async throws {
    var plan = DownloadPlan(try server.url("/100k"), to: directory.file("file"))
    plan.connections = 8
    plan.smallestPiece = 5_000
    plan.retry.firstDelay = .milliseconds(10)
    plan.retry.attemptsMax = 20
    change(&plan)
    let result = try await URLSession(configuration: .ephemeral).download(plan).value
    #expect(FileManager.default.contents(atPath: directory.path("file")) == Data(RealServer.hundredKiB))
    #expect(result.received == RealServer.hundredKiB.count)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["file"])
  }

  @Test func ranges() async throws { try await download(try SessionServer(.nginx, "")) }

  /// nginx answers 200 to each range.
  @Test func noRanges() async throws { try await download(try SessionServer(.nginx, "max_ranges 0;")) }

  /// nginx compresses nothing, because the requests accept no coding.
  @Test func compression() async throws {
    try await download(try SessionServer(.nginx, "gzip on; gzip_types *; gzip_min_length 1;"))
  }

  /// nginx answers 503 to each request beyond the second. The bytes of the first second come at once.
  @Test func aLimitOfConnections() async throws {
    let server = try SessionServer(
      .nginx, "limit_conn all 2; limit_rate 30k;", http: "limit_conn_zone $server_name zone=all:1m;")
    try await download(server)
  }

  /// The rate of each connection is the limit, so four are quicker than one.
  @Test func aLimitOfRates() async throws {
    try await download(try SessionServer(.nginx, "limit_rate 20k;")) { $0.connections = 4 }
  }
}
