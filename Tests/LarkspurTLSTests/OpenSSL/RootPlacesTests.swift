import Foundation
import LarkspurTestServer
import TestKit
import Testing

@testable import LarkspurTLS

/// The places that are searched for the system's roots if OpenSSL's own are empty.
@Suite struct RootPlacesTests {
  private static let date: Int64 = Int64(Date().timeIntervalSince1970)

  private static func isTrusted(_ store: TrustStore, _ ca: TestCA) throws -> Bool {
    let sent = try #require(Certificate.read(Array(try ca.issue().chainPEM.utf8)))
    return store.verify(sent, for: nil, date: date).0.isTrusted
  }

  private static func write(_ ca: TestCA, to path: String) throws {
    let url = URL(filePath: path)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(ca.rootCertificatePEM.utf8).write(to: url)
  }

  @Test(arguments: RootPlaces.usualFiles) func files(path: String) throws {
    let (root, ca) = (try TemporaryDirectory(), try TestCA())
    try Self.write(ca, to: root.url.path + path)
    let store = try TrustStore(.only([]))
    #expect(try !Self.isTrusted(store, ca))
    #expect(store.addUsualRoots(after: "nothing", below: root.url.path) == nil)
    #expect(try Self.isTrusted(store, ca))
  }

  /// Debian, Alpine and Arch; Fedora; openSUSE; FreeBSD; Android.
  @Test(
    arguments: [
      "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
      "/usr/local/share/certs/ca-root-nss.crt", "/apex/com.android.conscrypt/cacerts",
      "/system/etc/security/cacerts",
    ])
  func systems(path: String) { #expect((RootPlaces.usualFiles + RootPlaces.usualDirectories).contains(path)) }

  /// All files of a directory count, and those that hold no certificate are passed over.
  @Test(arguments: RootPlaces.usualDirectories) func directories(path: String) throws {
    let (root, authorities) = (try TemporaryDirectory(), [try TestCA(), try TestCA()])
    for (index, ca) in authorities.enumerated() { try Self.write(ca, to: root.url.path + path + "/\(index).0") }
    try Data("no certificate".utf8).write(to: URL(filePath: root.url.path + path + "/README"))
    let store = try TrustStore(.only([]))
    #expect(store.addUsualRoots(after: "nothing", below: root.url.path) == nil)
    for ca in authorities { #expect(try Self.isTrusted(store, ca)) }
  }

  /// The first place with certificates counts alone.
  @Test func theFirstPlace() throws {
    let (root, first, second) = (try TemporaryDirectory(), try TestCA(), try TestCA())
    try Self.write(first, to: root.url.path + RootPlaces.usualFiles[1])
    try Self.write(second, to: root.url.path + RootPlaces.usualFiles[2])
    let store = try TrustStore(.only([]))
    #expect(store.addUsualRoots(after: "nothing", below: root.url.path) == nil)
    #expect(try Self.isTrusted(store, first) && !Self.isTrusted(store, second))
  }

  @Test func noPlace() throws {
    let (root, store) = (try TemporaryDirectory(), try TrustStore(.only([])))
    let message = try #require(store.addUsualRoots(after: "neither a nor b holds a certificate", below: root.url.path))
    #expect(message.hasPrefix("neither a nor b holds a certificate, nor does any of /etc/ssl/certs"))
    for place in RootPlaces.usualFiles + RootPlaces.usualDirectories { #expect(message.contains(place)) }
  }

  /// Places that the program names are not replaced.
  @Test func namedPlaces() throws {
    let missing = try TemporaryDirectory().path("missing")
    let places = RootPlaces(file: missing, directories: missing)
    let (store, ca) = (try TrustStore(.system, in: places), try TestCA())
    let sent = try #require(Certificate.read(Array(try ca.issue().chainPEM.utf8)))
    let complaint = store.verify(sent, for: nil, date: Self.date).0.complaint
    #expect(complaint?.hasPrefix(missing) == true && complaint?.contains("ca-bundle") == false)
  }
}
