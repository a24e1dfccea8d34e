import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Tests programs whose delegates decide about the certificates of background sessions, with the transfer service and
/// without it.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BackgroundTrustTests {
  private let authority: TestCA
  private let fixture: BackgroundFixture

  init() throws {
    authority = try TestCA()
    var tls = TestServer.TLS(certificate: try authority.issue())
    tls.clientCertificate = .asked
    tls.acceptableIssuersDER = [authority.rootCertificateDER]
    fixture = try BackgroundFixture(tls: tls)
    fixture.serve("/file", count: 100_000)
    _ = try fixture.file("ends", "")
  }

  private func write(_ name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: fixture.folder.appending(path: name))
  }

  /// Runs a program until its download has ended.
  ///
  /// - Returns: The lines that the program prints.
  private func download(byService isServed: Bool) throws -> [String] {
    let tasks = [(kind: "get", path: "/file", name: "download")]
    return try fixture.program(tasks, environment: isServed ? fixture.serviceEnvironment() : nil).text()
      .split(separator: "\n").map(String.init)
  }

  private static let trustLine = "trust 127.0.0.1 unable to get local issuer certificate"

  @Test(.ownThread, arguments: [true, false]) func aServerIsTrustedByTheDelegate(isServed: Bool) throws {
    defer { fixture.stopService() }
    try write("root", authority.rootCertificateDER)
    let client = try authority.issue()
    try write("certificate", client.certificateDER)
    try write("key", client.privateKeyDER)
    let lines = try download(byService: isServed)
    #expect(lines.contains(Self.trustLine), "\(lines)")
    #expect(lines.contains("certificate 127.0.0.1 of 1 issuers"), "\(lines)")
    #expect(try fixture.ends() == ["download 0"])
    #expect(
      try Data(contentsOf: fixture.folder.appending(path: "download")) == Data(TestServer.content(count: 100_000)))
    #expect(fixture.server.handshakes.map(\.clientCertificateDER) == [client.certificateDER])
    // The key has been nowhere but in memory.
    #expect(!fixture.stateContains(Data(client.privateKeyDER)))
  }

  @Test(.ownThread, arguments: [true, false]) func aServerIsRefusedByTheDelegate(isServed: Bool) throws {
    defer { fixture.stopService() }
    try write("root", try TestCA().rootCertificateDER)
    #expect(try download(byService: isServed).contains(Self.trustLine))
    #expect(try fixture.ends() == ["download \(URLError.Code.cancelled.rawValue)"])
    #expect(fixture.server.requests.isEmpty)
  }

  @Test(.ownThread, arguments: [true, false]) func theSettingsDecideByDefault(isServed: Bool) throws {
    defer { fixture.stopService() }
    #expect(try download(byService: isServed).contains(Self.trustLine))
    #expect(try fixture.ends() == ["download \(URLError.Code.serverCertificateUntrusted.rawValue)"])
    #expect(fixture.server.requests.isEmpty)
  }
}
