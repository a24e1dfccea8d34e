import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// The system's roots, which a process reads when it first wants them.
@Suite(.timeLimit(.minutes(1)), .ownThread) struct TrustProcessTests {
  /// Connections fail as long as the file cannot be opened, and no longer: there may have been no descriptor left. (Here
  /// it is a link to itself, which nobody can open, whatever he may.)
  @Test func rootsThatCanBeReadLater() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larkspur-roots-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (place, roots) = (folder.appending(path: "place"), folder.appending(path: "roots"))
    try FileManager.default.createSymbolicLink(atPath: place.path, withDestinationPath: "place")
    let authority = try TestCA()
    try authority.rootCertificatePEM.write(to: roots, atomically: false, encoding: .utf8)
    let server = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
    let probe = try SiblingProcess(
      "SessionProbe", ["roots", server.url("/get"), roots.path],
      environment: ["SSL_CERT_FILE": place.path, "SSL_CERT_DIR": folder.path])
    let failure = URLError.secureConnectionFailed.rawValue
    #expect(try probe.numbers() == [failure, failure, 200, 200])
    #expect(server.requestsReceived == 2)
  }
}
