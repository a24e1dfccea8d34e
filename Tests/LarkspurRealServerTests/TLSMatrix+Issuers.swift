import LarkspurTLS
import LarkspurTestServer

// The chain above the server's certificate.

extension TLSMatrix {
  static let issuerRows: [Row] = [
    Row(
      "self-signed",
      trial("unknown", .fails(.selfSigned)) { plan in
        plan.present(try TestCA.selfSigned(.init(names: ["a.test"])))
      },
      trial("trusted") { plan in
        plan.present(try TestCA.selfSigned(.init(names: ["a.test"])))
        plan.configuration.roots = .only(try plan.authorities.certificates(plan.chain[0]))
      }),
    Row(
      "untrusted-root",
      trial("root not sent", .fails(.untrustedRoot)) { plan in
        plan.present(try TestCA().intermediate().issue(.init(names: ["a.test"])))
      },
      trial("root sent", .fails(.untrustedRoot)) { plan in try plan.presentUnknown() },
      trial("of the same name", .fails(.untrustedRoot)) { plan in
        // The keys differ, so that no key identifier points to the trusted root.
        plan.present(try TestCA().issue(.init(names: ["a.test"])))
      },
      trial("trusted by the caller") { plan in
        try plan.presentUnknown()
        plan.decideTrust = { _ in .trusted() }
      },
      trial("refused by the caller", .fails(.refusedByCaller)) { plan in plan.decideTrust = { _ in .refused } },
      trial("left to the verification", .fails(.untrustedRoot)) { plan in
        try plan.presentUnknown()
        plan.decideTrust = { _ in .verified }
      },
      trial("any certificate will do") { plan in
        try plan.presentUnknown()
        plan.configuration.dangerouslyAllowsAnyCertificate = true
      }),
    Row(
      "incomplete-chain", trial("intermediate missing", .fails(.untrustedRoot)) { plan in plan.chain.removeLast() }),
    Row(
      "reversed-chain",
      note: "The server's own certificate comes first in all of TLS's versions; the others may come in any order.",
      trial("behind the leaf") { plan in
        let lower = try plan.authorities.middle.intermediate(name: "Lower")
        let lowest = try lower.intermediate(name: "Lowest")
        let leaf = try lowest.issue(.init(names: ["a.test"]))
        plan.present(leaf)
        plan.chain = [leaf.certificateDER] + leaf.issuersDER.reversed()
      },
      trial("with what does not belong there") { plan in
        plan.chain += try [TestCA().rootCertificateDER, plan.authorities.leaf().certificateDER]
      }),
    Row(
      "sha1-intermediate",
      trial("SHA-1", .fails(.weakDigest)) { plan in
        plan.isWeak = true
        let middle = try plan.authorities.root.intermediate { $0.digest = .sha1 }
        plan.present(try middle.issue(.init(names: ["a.test"])))
      },
      // Trust in a root does not depend on its own signature.
      trial("root") { plan in
        var request = TestCertificate.Request.authority("Old root")
        request.digest = .sha1
        let root = try TestCA(request)
        plan.present(try root.intermediate().issue(.init(names: ["a.test"])))
        plan.configuration.roots = .only(try plan.authorities.certificates(root.rootCertificateDER))
      }),
    Row(
      "superfish, edellroot, dsdtestprovider, preact-cli, webpack-dev-server, mitm-software",
      note: "Roots whose keys are known to everybody. They are nowhere in Debian's store, nor in one of ours.",
      of: [
        "Superfish, Inc.", "eDellRoot", "DSDTestProvider", "preact-cli", "webpack-dev-server", "MITM software",
      ].map { name in
        trial(name, .fails(.untrustedRoot)) { plan in
          let leaf = try TestCA(name: name).issue(.init(names: ["a.test"]))
          plan.present(leaf)
          plan.chain = [leaf.certificateDER] + leaf.issuersDER
        }
      }),
    Row(
      "captive-portal, known-interception, blocked-interception",
      note: "There is no list of interceptors: their roots are unknown, or the user has installed them.",
      trial("the portal's own certificate", .fails(.wrongHost)) { plan in
        try plan.presentLeaf { $0.alternativeNames = [.dns("captive-portal.test")] }
      },
      trial("an interceptor's", .fails(.untrustedRoot)) { plan in
        plan.present(try TestCA(name: "BadSSL MITM Test Root").issue(.init(names: ["a.test"])))
      }),
  ]

  static let ourIssuerRows: [Row] = [
    Row(
      "ours: EKU clientAuth only",
      leaf("client", .fails(.certificateInvalid)) { $0.extendedKeyUsage = [.clientAuth] },
      leaf("none at all") { $0.extendedKeyUsage = nil },
      // RFC 5280 4.2.1.12 allows verifiers to require the purpose itself, and OpenSSL does so.
      leaf("any", .fails(.certificateInvalid)) { $0.extendedKeyUsage = [.any] },
      leaf("key usage without signatures", .fails(.certificateInvalid)) { $0.keyUsage = [.crlSign] }.tls13),
    Row(
      "ours: CA cert used as leaf",
      note: "An authority's certificate that may not sign handshakes is refused. One that may is a server's as well: "
        + "RFC 5280 does not forbid it.",
      leaf("signs certificates only", .fails(.certificateInvalid)) {
        $0.basicConstraints = .init(isAuthority: true)
        $0.keyUsage = [.keyCertSign, .crlSign]
      }.tls13,
      leaf("signs both") {
        $0.basicConstraints = .init(isAuthority: true)
        $0.keyUsage = [.keyCertSign, .digitalSignature]
      }),
    Row(
      "ours: leaf signed by leaf (no CA:TRUE)",
      trial("basicConstraints without CA", .fails(.certificateInvalid)) { plan in
        plan.present(try TestCA(plan.authorities.leaf()).issue(.init(names: ["a.test"])))
      },
      trial("no basicConstraints", .fails(.certificateInvalid)) { plan in
        let leaf = try plan.authorities.leaf {
          $0.basicConstraints = nil
          $0.keyUsage = [.keyCertSign]
        }
        plan.present(try TestCA(leaf).issue(.init(names: ["a.test"])))
      }),
    Row(
      "ours: pathlen exceeded",
      trial("one too many", .fails(.certificateInvalid)) { plan in
        let upper = try plan.authorities.root.intermediate(name: "Upper", pathLength: 0)
        plan.present(try upper.intermediate(name: "Lower").issue(.init(names: ["a.test"])))
      },
      trial("as many as allowed") { plan in
        let upper = try plan.authorities.root.intermediate(name: "Upper", pathLength: 1)
        plan.present(try upper.intermediate(name: "Lower").issue(.init(names: ["a.test"])))
      }),
    Row(
      "ours: name constraints violated",
      constrained("not permitted", .fails(.certificateInvalid), .init(permitted: [.dns("b.test")])),
      constrained("excluded", .fails(.certificateInvalid), .init(excluded: [.dns("test")])),
      trial("the host of a wildcard is excluded", .fails(.certificateInvalid)) { plan in
        plan.host = "bad.good.test"
        let middle = try plan.authorities.root.intermediate {
          $0.nameConstraints = .init(excluded: [.dns("bad.good.test")])
        }
        plan.present(try middle.issue(.init(names: ["*.good.test"])))
      },
      constrained("permitted", .answered(200), .init(permitted: [.dns("test")]))),
    Row("ours: notBefore in future", leaf("tomorrow", .fails(.notYetValid)) { $0.notBefore = 86_400 }),
    Row(
      "ours: right chain, wrong private key",
      note: "nginx and s_server refuse to start so: our own server does it.",
      // CVE-2014-1266: a valid chain counts only with a signature by its key.
      trial("P-256", .fails(.badSignature), by: [.ours]) { plan in plan.key = try plan.authorities.leaf().privateKeyDER
      },
      trial("RSA", .fails(.badSignature), by: [.ours]) { plan in
        try plan.presentRSA()
        plan.key = try plan.authorities.leaf { $0.key = .rsa(2048) }.privateKeyDER
      }),
  ]

  private static func constrained(
    _ name: String, _ outcome: TLSOutcome, _ constraints: TestCertificate.Request.NameConstraints
  ) -> Trial {
    trial(name, outcome) { plan in
      let middle = try plan.authorities.root.intermediate { $0.nameConstraints = constraints }
      plan.present(try middle.issue(.init(names: ["a.test"])))
    }
  }
}

extension TLSPlan {
  /// Gives the server a certificate with an unknown root, and sends that root along.
  fileprivate mutating func presentUnknown() throws {
    let leaf = try TestCA(name: "Unknown").issue(.init(names: ["a.test"]))
    present(leaf)
    chain = [leaf.certificateDER] + leaf.issuersDER
  }
}
