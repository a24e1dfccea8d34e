import AFNetworking
import Foundation
import LarkspurTestServer
import Testing

/// A server's certificate chain (its own certificate, two intermediate authorities and a root that the session trusts),
/// and other chains.
struct Chains {
  let root: TestCA
  let upper: TestCA
  let lower: TestCA
  let leaf: TestCertificate
  /// The root and the certificate of another server. The session trusts this root, too.
  let otherRoot: TestCA
  let otherLeaf: TestCertificate

  init() throws {
    root = try TestCA()
    upper = try root.intermediate()
    lower = try upper.intermediate()
    leaf = try lower.issue(.init(names: ["a.example", "*.a.example"]))
    otherRoot = try TestCA(name: "other root")
    otherLeaf = try otherRoot.issue(.init(names: ["b.example"]))
  }

  /// The server's trust, as a challenge contains it.
  var trust: SecTrust { get throws { try trust(of: leaf.chainDER) } }

  var otherTrust: SecTrust { get throws { try trust(of: otherLeaf.chainDER) } }

  /// Makes a trust of any chain that a server might send. The session trusts both roots.
  func trust(of chain: [[UInt8]], host: String = "a.example", date: Date = Date()) throws -> SecTrust {
    let roots = try [root, otherRoot].map { try Self.certificate($0.rootCertificateDER) }
    return try ServerTrust(host: host, chain: try chain.map(Self.certificate), roots: .only(roots), date: date)
  }

  /// The whole chain, from the server's certificate to the root.
  var all: [[UInt8]] { leaf.chainDER + [leaf.rootDER] }

  static func certificate(_ bytes: [UInt8]) throws -> SecCertificate { try #require(TLSCertificate(Data(bytes))) }

  /// Makes a policy that pins these certificates.
  func policy(_ mode: AFSSLPinningMode, _ pinned: [[UInt8]]) -> AFSecurityPolicy {
    AFSecurityPolicy(pinningMode: mode, withPinnedCertificates: Set(pinned.map { Data($0) }))
  }

  static func selfSigned(
    _ names: [String], _ change: (inout TestCertificate.Request) -> Void = { _ in }
  ) throws -> TestCertificate {
    var request = TestCertificate.Request(names: names)
    change(&request)
    return try TestCA.selfSigned(request)
  }
}

extension TestCertificate.Request {
  /// The request with a validity that ended an hour ago.
  var expired: Self {
    var request = self
    (request.notBefore, request.notAfter) = (-7200, -3600)
    return request
  }
}
