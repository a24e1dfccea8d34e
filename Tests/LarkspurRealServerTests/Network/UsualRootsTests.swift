import Foundation
import LarkspurTestServer
import Testing

@testable import LarkspurTLS

/// The system's roots on a machine where OpenSSL's own places are empty.
@Suite struct UsualRootsTests {
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
}
