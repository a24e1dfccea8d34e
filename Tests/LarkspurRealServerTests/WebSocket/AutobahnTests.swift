import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// WebSocket tasks and Autobahn's fuzzing server. `Tests/Autobahn/run` runs all cases, which take minutes.
@Suite(.serialized, .ownThread) struct AutobahnTests {
  /// Runs the server's cases.
  ///
  /// - Parameters:
  ///   - count: The expected number of cases.
  ///   - roots: The trusted roots, in PEM.
  private func run(_ server: AutobahnServer, count: Int, roots: String? = nil) throws {
    let trusted = try roots.map { [try server.write("roots.pem", $0)] } ?? []
    _ = try SiblingProcess("autobahn", ["run", server.url, "larkspur"] + trusted).text()
    let lines = try SiblingProcess("autobahn", ["report", server.index]).text().split(separator: "\n")
    #expect(lines.dropLast().isEmpty, "\(lines.joined(separator: "\n"))")
    #expect(lines.last.flatMap { Int($0) } == count)
  }

  /// All cases but the large messages of 9 and most of the compressed ones of 12 and 13, of which there are two in each
  /// group. A case of these groups sends a thousand messages.
  @Test func plain() throws {
    let samples = [
      "12.1.3", "12.1.11", "12.2.4", "12.2.12", "12.3.5", "12.3.11", "12.4.6", "12.4.12", "12.5.7", "12.5.11",
      "13.1.3", "13.1.12", "13.2.6", "13.2.11", "13.3.4", "13.3.11", "13.4.7", "13.4.12", "13.5.5", "13.5.11",
      "13.6.6", "13.6.11", "13.7.7", "13.7.11",
    ]
    let server = try AutobahnServer(
      cases: ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"] + samples)
    try run(server, count: 247 + samples.count)
  }

  @Test func overTLS() throws {
    let authority = try TestCA()
    let server = try AutobahnServer(
      cases: ["1.*", "2.*", "5.*", "7.1.*", "12.1.3"], certificate: try authority.issue())
    try run(server, count: 16 + 11 + 20 + 6 + 1, roots: authority.rootCertificatePEM)
  }
}
