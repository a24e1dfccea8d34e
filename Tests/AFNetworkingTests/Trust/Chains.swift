import AFNetworking
import Foundation
import LarkspurTestServer
import Testing

/// A server's chain: its own certificate, two authorities, and a root that the session trusts; and others beside it.
struct Chains {
  let root: TestCA
  let upper: TestCA
  let lower: TestCA
  let leaf: TestCertificate
  /// Another server's, below another root, which the session trusts as well.
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

  /// As a challenge would bring it.
  var trust: SecTrust { get throws { try trust(of: leaf.chainDER) } }

  var otherTrust: SecTrust { get throws { try trust(of: otherLeaf.chainDER) } }

  /// Of whatever a server sends. The session trusts both roots.
  func trust(of chain: [[UInt8]], host: String = "a.example", date: Date = Date()) throws -> SecTrust {
    let roots = try [root, otherRoot].map { try Self.certificate($0.rootCertificateDER) }
    return try ServerTrust(host: host, chain: try chain.map(Self.certificate), roots: .only(roots), date: date)
  }

  /// From the server's to the root.
  var all: [[UInt8]] { leaf.chainDER + [leaf.rootDER] }

  static func certificate(_ bytes: [UInt8]) throws -> SecCertificate { try #require(TLSCertificate(Data(bytes))) }

  /// A policy that pins these.
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
  /// It ended an hour ago.
  var expired: Self {
    var request = self
    (request.notBefore, request.notAfter) = (-7200, -3600)
    return request
  }
}
