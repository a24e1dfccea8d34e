import LarkspurTLS
import LarkspurTestServer

// Revoked certificates, by lists and by stapled responses, and pins.

extension TLSMatrix {
  static let revocationRows: [Row] = [
    Row(
      "revoked",
      note: "As in curl: nothing is fetched. Revocation lists count when they are given, and then for every issuer; a "
        + "stapled response counts always, and has to be there if the certificate promises one.",
      trial("no lists") { _ in },
      lists("the leaf", .fails(.revoked)) { plan in
        let authorities = plan.authorities
        return try [
          authorities.root.revocationList().der, authorities.middle.revocationList(revoking: [plan.leaf]).der,
        ]
      },
      lists("the intermediate", .fails(.revoked)) { plan in
        let authorities = plan.authorities
        return try [
          authorities.root.revocationList(revoking: [authorities.middle.certificate]).der,
          authorities.middle.revocationList().der,
        ]
      },
      lists("another certificate", .answered(200)) { plan in
        let authorities = plan.authorities
        return try [
          authorities.root.revocationList().der,
          authorities.middle.revocationList(revoking: [authorities.leaf()]).der,
        ]
      },
      lists("no list of the intermediate's", .fails(.revocationUnknown)) { plan in
        [try plan.authorities.root.revocationList().der]
      },
      lists("a list out of date", .fails(.revocationUnknown)) { plan in
        let authorities = plan.authorities
        return try [
          authorities.root.revocationList().der,
          authorities.middle.revocationList(thisUpdate: -20_000, nextUpdate: -10_000).der,
        ]
      },
      lists("a list of somebody else's", .fails(.revocationUnknown)) { plan in
        let root = plan.authorities.root
        return try [root.revocationList().der, root.intermediate().revocationList().der]
      },
      staple("says good", .answered(200)) { authority, leaf in try authority.ocspResponse(for: leaf) },
      staple("says revoked", .fails(.revoked)) { authority, leaf in
        try authority.ocspResponse(for: leaf, status: .revoked())
      },
      staple("does not know", .fails(.revocationUnknown)) { authority, leaf in
        try authority.ocspResponse(for: leaf, status: .unknown)
      },
      staple("of last year", .fails(.revocationUnknown)) { authority, leaf in
        try authority.ocspResponse(for: leaf, thisUpdate: -366 * 86_400, nextUpdate: -365 * 86_400)
      },
      staple("of another certificate", .fails(.revocationUnknown)) { authority, _ in
        try authority.ocspResponse(for: TLSAuthorities.get().leaf())
      },
      staple("signed by another", .fails(.revocationUnknown)) { authority, leaf in
        try authority.ocspResponse(for: leaf, signedBy: TestCA().certificate)
      },
      staple("promised and good", .answered(200), isPromised: true) { authority, leaf in
        try authority.ocspResponse(for: leaf)
      },
      leaf("promised and missing", .fails(.revocationUnknown)) { $0.mustStaple = true }),
    Row(
      "pinning-test",
      trial("no pins") { _ in },
      pins("the leaf's", .answered(200)) { try $0.certificates($1[0]).map(\.pin) },
      pins("the intermediate's", .answered(200)) { try $0.certificates($1[1]).map(\.pin) },
      pins("the root's", .answered(200)) { authorities, _ in try authorities.roots.map(\.pin) },
      pins("a certificate", .answered(200)) { try $0.certificates($1[0]).map { .certificate($0) } },
      pins("another key's", .pinMismatch) { authorities, _ in
        try authorities.certificates(authorities.clients.rootCertificateDER).map(\.pin)
      },
      // Certificates that a server sends beside its chain prove nothing.
      pins("a certificate that is sent, and no part of the chain", .pinMismatch, isSent: true) { authorities, _ in
        try authorities.certificates(authorities.clients.rootCertificateDER).map(\.pin)
      },
      pins("another key's, for other hosts", .answered(200), for: "b.test") { authorities, _ in
        try authorities.certificates(authorities.clients.rootCertificateDER).map(\.pin)
      },
      trial("right, but the root is not trusted", .fails(.untrustedRoot)) { plan in
        plan.configuration.pins = PinPolicy(
          [PinPolicy.Host("a.test", pins: Set(try plan.authorities.certificates(plan.chain[0]).map(\.pin)))]
            .compactMap(\.self))
        plan.configuration.roots = .only(try plan.authorities.certificates(TestCA().rootCertificateDER))
      }),
  ]

  private static func lists(
    _ name: String, _ outcome: TLSOutcome, _ make: @escaping @Sendable (RevocationScene) throws -> [[UInt8]]
  ) -> Trial {
    trial("list: " + name, outcome) { plan in
      let leaf = try plan.authorities.leaf()
      plan.present(leaf)
      plan.configuration.revocationLists = try make(RevocationScene(authorities: plan.authorities, leaf: leaf))
    }
  }

  private struct RevocationScene {
    var authorities: TLSAuthorities
    var leaf: TestCertificate
  }

  private static func staple(
    _ name: String, _ outcome: TLSOutcome, isPromised: Bool = false,
    _ make: @escaping @Sendable (TestCA, TestCertificate) throws -> [UInt8]
  ) -> Trial {
    trial("stapled response: " + name, outcome) { plan in
      let leaf = try plan.authorities.leaf { $0.mustStaple = isPromised }
      plan.present(leaf)
      plan.staple = try make(plan.authorities.middle, leaf)
    }
  }

  private static func pins(
    _ name: String, _ outcome: TLSOutcome, for host: String = "a.test", isSent: Bool = false,
    _ make: @escaping @Sendable (TLSAuthorities, [[UInt8]]) throws -> [Pin]
  ) -> Trial {
    trial(name, outcome) { plan in
      if isSent { plan.chain.append(plan.authorities.clients.rootCertificateDER) }
      let pins = Set(try make(plan.authorities, plan.chain))
      plan.configuration.pins = PinPolicy([PinPolicy.Host(host, pins: pins)].compactMap(\.self))
    }
  }
}
