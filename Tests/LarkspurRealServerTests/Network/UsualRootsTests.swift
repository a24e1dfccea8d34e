import Foundation
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

@testable import LarkspurTLS

/// The system's roots on a machine where OpenSSL's own places are empty.
@Suite(.ownThread) struct UsualRootsTests {
  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/etc/ssl/certs"), "OpenSSL's own places are elsewhere"))
  func aMachineOfAnotherSystem() throws {
    let machine = try Namespace()
    try machine.mountDisk(at: "/etc/ssl", pages: 64)
    let ca = try TestCA()
    let sent = try #require(Certificate.read(Array(try ca.issue().chainPEM.utf8)))
    let (roots, date) = (ca.rootCertificatePEM, Int64(Date().timeIntervalSince1970))
    let places = RootPlaces(file: nil, directories: nil)
    let none = try machine.run { try TrustStore(.system, in: places).verify(sent, for: nil, date: date).0 }
    #expect(!none.isTrusted && none.complaint?.contains("/etc/ssl/ca-bundle.pem") == true)
    let found = try machine.run {
      try Data(roots.utf8).write(to: URL(filePath: "/etc/ssl/ca-bundle.pem"))
      return try TrustStore(.system, in: places).verify(sent, for: nil, date: date).0
    }
    #expect(found.isTrusted)
  }

  /// A server whose root is in one of the usual places, before and after the root is there.
  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/etc/ssl/certs"), "OpenSSL's own places are elsewhere"))
  func aServerWithARootOfAnotherSystem() async throws {
    let machine = try Namespace()
    try machine.mountDisk(at: "/etc/ssl", pages: 64)
    var plan = try TLSPlan(.get(), .tls1_3)
    try plan.presentLeaf { $0.alternativeNames = TestCertificate.Request().alternativeNames }
    let server = try machine.run { [plan] in try NginxServer(plan) }
    let load = try machine.run { try PoolLoad() }
    func fetch(_ roots: String?) async throws -> Result<PoolReply, TransportError> {
      let security = try machine.run {
        if let roots { try Data(roots.utf8).write(to: URL(filePath: "/etc/ssl/ca-bundle.pem")) }
        var configuration = TLSConfiguration()
        configuration.rootPlaces = RootPlaces(file: nil, directories: nil)
        return Security(try TLSContext(configuration))
      }
      let route = Route(host: "127.0.0.1", port: server.tcpPort, security: security)
      return await load.loop.run { await load.fetch("GET", "/small", from: route) }
    }
    guard case .failure(.tls) = try await fetch(nil) else {
      Issue.record("the server is trusted without a root")
      return
    }
    #expect(try await fetch(plan.authorities.root.rootCertificatePEM).get().status == 200)
    #expect(await load.leftovers() == [])
  }
}
