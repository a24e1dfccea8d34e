import Foundation
import LarkspurTLS
import LarkspurTestServer

// The server's own certificate and its names.

extension TLSMatrix {
  static let certificateRows: [Row] = [
    Row(
      "expired",
      leaf("yesterday", .fails(.expired)) { ($0.notBefore, $0.notAfter) = (-60 * 86_400, -86_400) },
      trial("the issuer", .fails(.expired)) { plan in
        let middle = try plan.authorities.root.intermediate {
          ($0.notBefore, $0.notAfter) = (-60 * 86_400, -86_400)
        }
        plan.present(try middle.issue(.init(names: ["a.test"])))
      }),
    Row("wrong.host", leaf("another name", .fails(.wrongHost)) { $0.alternativeNames = [.dns("b.test")] }),
    Row(
      "no-common-name",
      leaf("with an organisation") { ($0.commonName, $0.organization) = ("", "Larkspur") },
      // RFC 6125 6.4.4, RFC 9110 4.3.4: the common name is not used.
      leaf("no name but the common one", .fails(.wrongHost)) {
        ($0.commonName, $0.alternativeNames) = ("a.test", [])
      }),
    Row("no-subject", leaf("empty subject") { $0.commonName = "" }),
    Row(
      "sha256/384/512",
      of: [TestCertificate.Digest.sha256, .sha384, .sha512].map { digest in
        trial(digest.rawValue) { plan in
          let middle = try plan.authorities.root.intermediate { $0.digest = digest }
          var request = TestCertificate.Request(names: ["a.test"])
          request.digest = digest
          plan.present(try middle.issue(request))
        }
      }),
    Row(
      "sha1-2016",
      leaf("SHA-1", .fails(.weakDigest)) { $0.digest = .sha1 }.weakly,
      trial("MD5", .fails(.weakDigest)) { plan in
        plan.isWeak = true
        let root = try TestCA(.rsa(2048))
        plan.configuration.roots = .only(try plan.authorities.certificates(root.rootCertificateDER))
        var request = TestCertificate.Request(names: ["a.test"])
        request.digest = .md5
        plan.present(try root.issue(request))
      }),
    Row(
      "ecc256/ecc384",
      of: [TestCertificate.KeyKind.ecP256, .ecP384, .ecP521, .ed25519].map { kind in
        leaf("\(kind)") { $0.key = kind }
      }),
    Row(
      "rsa2048/4096/8192",
      of: [2048, 4096].map { bits in leaf("\(bits)") { $0.key = .rsa(bits) } } + [
        trial("8192") { plan in
          let key = try rsa8192.get()
          try plan.presentLeaf { $0.privateKeyDER = key }
        },
        // OpenSSL refuses keys below 2048 bits at level 2.
        leaf("1024", .fails(.weakKey)) { $0.key = .rsa(1024) }.weakly,
      ]),
    Row(
      "1000-sans",
      leaf("1000 names") { $0.alternativeNames = (1...1000).map { .dns("name\($0).san.test") } + [.dns("a.test")] }),
    Row(
      "10000-sans",
      note: "Refused: OpenSSL takes 100 KiB of certificates (SSL_CTX_set_max_cert_list). It says so and goes on.",
      leaf("10,000 names", .fails(.protocolViolation)) {
        $0.alternativeNames = (1...10_000).map { .dns("name\($0).san.test") } + [.dns("a.test")]
      }),
    Row(
      "extended-validation",
      note: "A certificate like any other: nothing is shown for its policy.",
      // The policy 2.23.140.1.1 of the CA/Browser Forum.
      leaf("with the policy") {
        $0.otherExtensions = [
          .init(object: "2.5.29.32", value: [0x30, 9, 0x30, 7, 6, 5, 0x67, 0x81, 0x0c, 1, 1])
        ]
      }),
    Row(
      "no-sct, invalid-expected-sct",
      note: "Certificate transparency is not enforced, as in curl and OpenSSL.",
      leaf("none") { _ in },
      leaf("garbage") {
        $0.otherExtensions = [.init(object: "1.3.6.1.4.1.11129.2.4.2", value: [4, 4, 0xde, 0xad, 0xbe, 0xef])]
      }),
    Row(
      "xn--n1aae7f7o (IDN)",
      note: "A host has to come as A-label; whoever has a U-label converts it first.",
      trial("A-label") { plan in
        plan.host = "XN--n1aae7f7o.test"
        try plan.presentLeaf { $0.alternativeNames = [.dns("xn--n1aae7f7o.test")] }
      },
      trial("wildcard") { plan in
        plan.host = "xn--n1aae7f7o.test"
        try plan.presentLeaf {
          $0.alternativeNames = [.dns("*.test.test"), .dns("*.test"), .dns("xn--n1aae7f7o.test")]
        }
      },
      trial("U-label", .fails(.hostInvalid)) { plan in
        plan.host = "пример.test"
        try plan.presentLeaf { $0.alternativeNames = [.dns("пример.test")] }
      }),
    Row(
      "long-extended-subdomain-name…, longextended…",
      of: [
        "long-extended-subdomain-name-containing-many-letters-and-dashes",
        "longextendedsubdomainnamewithoutdashesinordertotestwordwrapping", String(repeating: "x", count: 63),
      ].map { label in
        trial(label) { plan in
          plan.host = label + ".long.test"
          try plan.presentLeaf { $0.alternativeNames = [.dns("*.long.test")] }
        }
      } + [
        // RFC 1035 2.3.4: 255 bytes on the wire, which are 253 in text.
        trial("253 bytes") { plan in
          plan.host = String(repeating: "123456789.", count: 24) + "12345678.test"
          let name = plan.host
          try plan.presentLeaf { $0.alternativeNames = [.dns(name)] }
        },
        trial("254 bytes", .fails(.hostInvalid)) { plan in
          plan.host = String(repeating: "123456789.", count: 24) + "123456789.test"
          let name = plan.host
          try plan.presentLeaf { $0.alternativeNames = [.dns(name)] }
        },
      ]),
  ]

  /// A key of 8192 bits, made of five primes, which takes two seconds instead of half a minute for two primes.
  private static let rsa8192 = Result {
    let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-rsa-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    try requireProgram(OpenSSLServer.program, package: "openssl")
    try ServerProcess.run(
      OpenSSLServer.program,
      [
        "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:8192", "-pkeyopt",
        "rsa_keygen_primes:5", "-out", file.path,
      ])
    // DER output would have the older format.
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("-") }
    return Array(Data(base64Encoded: lines.joined()) ?? Data())
  }

  static let ourNameRows: [Row] = [
    Row(
      "ours: wildcard *.test vs a.b.test",
      names("two labels", .fails(.wrongHost), of: ["*.b.test"], for: "a.c.b.test"),
      names("one label", of: ["*.b.test"], for: "a.b.test"),
      names("a label with an underscore", of: ["*.b.test"], for: "a_c.b.test"),
      names("no label", .fails(.wrongHost), of: ["*.b.test"], for: "b.test"),
      names("as the corpus has it", .fails(.wrongHost), of: ["*.test"], for: "a.b.test"),
      names("not the first label", .fails(.wrongHost), of: ["a.*.test"], for: "a.b.test"),
      names("an address", .fails(.wrongHost), of: ["*.0.0.1"], for: "127.0.0.1")),
    Row(
      "ours: wildcard *.co.uk style",
      note:
        "Accepted, as by OpenSSL and curl without libpsl: public suffixes are not known here. A wildcard right below "
        + "the top (*.uk) is refused.",
      names("a public suffix", of: ["*.co.uk"], for: "example.co.uk"),
      names("a top-level domain", .fails(.wrongHost), of: ["*.uk"], for: "example.uk")),
    Row(
      "ours: partial wildcard f*.example.test",
      names("front", .fails(.wrongHost), of: ["f*.example.test"], for: "foo.example.test"),
      names("back", .fails(.wrongHost), of: ["*o.example.test"], for: "foo.example.test"),
      names("middle", .fails(.wrongHost), of: ["f*o.example.test"], for: "foo.example.test")),
    Row(
      "ours: IP host with dNSName \"127.0.0.1\"",
      names("as a name", .fails(.wrongHost), of: ["127.0.0.1"], for: "127.0.0.1")),
    Row(
      "ours: IP SAN",
      addresses("IPv4", of: ["127.0.0.1"], for: "127.0.0.1"),
      addresses("IPv6", of: ["::1"], for: "::1"),
      addresses("IPv6 written at length", of: ["::1"], for: "0:0:0:0:0:0:0:1"),
      addresses("IPv6 with a zone", of: ["fe80::1"], for: "fe80::1%lo"),
      addresses("another", .fails(.wrongHost), of: ["127.0.0.2"], for: "127.0.0.1"),
      addresses("another kind", .fails(.wrongHost), of: ["::ffff:127.0.0.1"], for: "127.0.0.1")),
    Row(
      "ours: NUL in SAN",
      names("behind the name", .fails(.wrongHost), of: ["a.test\0.evil.test"], for: "a.test"),
      names("in the host", .fails(.hostInvalid), of: ["a.test"], for: "a.test\0.evil.test")),
    Row(
      "ours: trailing dot host",
      note: "Accepted: the dot is not part of the name, neither in SNI nor when names are compared.",
      names("in the host", of: ["a.test"], for: "a.test."),
      names("in the certificate", .fails(.wrongHost), of: ["a.test."], for: "a.test"),
      names("two dots", .fails(.hostInvalid), of: ["a.test"], for: "a.test.."),
      Trial(name: "in SNI", outcome: .answered(200), servers: [.nginx]) { kind, plan in
        let server = try kind.start(plan)
        var visit = try await TLSClient(plan).visit(server, as: "A.Test.", ["/name"])
        let name = visit.replies.first.map { String(decoding: $0.body, as: UTF8.self) }
        if name != "a.test" { visit.outcome = .answered(0) }
        return visit
      }),
  ]

  private static func names(
    _ name: String, _ outcome: TLSOutcome = .answered(200), of names: [String], for host: String
  ) -> Trial {
    trial(name, outcome) { plan in
      plan.host = host
      try plan.presentLeaf { $0.alternativeNames = names.map { .dns($0) } }
    }
  }

  private static func addresses(
    _ name: String, _ outcome: TLSOutcome = .answered(200), of addresses: [String], for host: String
  ) -> Trial {
    trial(name, outcome) { plan in
      plan.host = host
      try plan.presentLeaf { $0.alternativeNames = addresses.compactMap { .address($0) } }
    }
  }
}

extension TLSMatrix.Trial {
  /// This trial with TLS 1.3 only: OpenSSL's servers do not use such a certificate in TLS 1.2.
  var tls13: Self {
    var trial = self
    trial.versions = [.tls1_3]
    return trial
  }

  /// This trial with a server at security level 0, which accepts weak parameters.
  var weakly: Self {
    Self(name: name, outcome: outcome, servers: servers, versions: versions) { kind, plan in
      var plan = plan
      plan.isWeak = true
      return try await run(kind, plan)
    }
  }
}
