import LarkspurTLS
import LarkspurTestServer

// Versions, cipher suites, groups.

extension TLSMatrix {
  static let protocolRows: [Row] = [
    Row(
      "rc4, rc4-md5, null, 3des",
      note: "Debian's OpenSSL has neither RC4 nor 3DES: their ServerHello is written by hand. It has NULL, at level 0.",
      of: ["NULL-SHA256", "ECDHE-ECDSA-NULL-SHA", "aNULL"].map { cipher in
        trial(cipher, .fails(.noSharedCipher), versions: [.tls1_2]) { plan in
          if cipher == "NULL-SHA256" { try plan.presentRSA() }
          (plan.ciphers, plan.isWeak) = (cipher, true)
        }
      }
        + [
          ("RC4-MD5", 0x0004), ("RC4-SHA", 0x0005), ("DES-CBC3-SHA", 0x000a), ("NULL-SHA256", 0x003b),
        ].map { name, number in
          trial(name + " though not offered", .fails(.noSharedCipher), by: [.ours], versions: [.tls1_2]) { plan in
            plan.script = HandWrittenTLS.hello(version: 0x0303, cipher: number)
          }
        }),
    Row(
      "cbc",
      note: "Accepted in TLS 1.2: OpenSSL computes the MAC in constant time, and there are servers that have nothing "
        + "better.",
      of: ["ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-ECDSA-AES128-SHA"].map { cipher in
        trial(cipher, versions: [.tls1_2]) { plan in plan.ciphers = cipher }
      }),
    Row(
      "mozilla-old/intermediate/modern",
      trial("old", versions: [.tls1_3]) { plan in
        plan.versions = .tls1_0 ... .tls1_3
        plan.isWeak = true
      },
      trial("intermediate", versions: [.tls1_3]) { plan in
        plan.versions = .tls1_2 ... .tls1_3
        plan.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384"
      },
      trial("intermediate, for a client without TLS 1.3", versions: [.tls1_2]) { plan in
        plan.versions = .tls1_2 ... .tls1_3
        plan.configuration.maximumVersion = .tls12
      },
      trial("modern", versions: [.tls1_3]) { _ in },
      trial("modern, for a client without TLS 1.3", .fails(.protocolVersion), versions: [.tls1_3]) { plan in
        plan.configuration.maximumVersion = .tls12
      }),
    Row(
      "static-rsa",
      note:
        "Not offered, as by browsers and Apple's transport security: there is no forward secrecy. A switch allows it.",
      of: ["AES128-GCM-SHA256", "AES256-SHA256", "AES128-SHA"].flatMap { cipher in
        [true, false].map { isAllowed in
          trial(
            cipher + (isAllowed ? ", allowed" : ""), isAllowed ? .answered(200) : .fails(.noSharedCipher),
            versions: [.tls1_2]
          ) { plan in
            try plan.presentRSA()
            plan.ciphers = cipher
            plan.configuration.dangerouslyAllowsLegacyKeyExchange = isAllowed
          }
        }
      }),
    Row(
      "tls-v1-0, tls-v1-1",
      trial("1.0", .fails(.protocolVersion), versions: [.tls1_0]) { $0.isWeak = true },
      trial("1.1", .fails(.protocolVersion), versions: [.tls1_1]) { $0.isWeak = true }),
    Row(
      "tls-v1-2",
      trial("default", versions: [.tls1_2]) { _ in },
      trial("RSA", versions: [.tls1_2]) { try $0.presentRSA() },
      trial("a client that wants 1.3", .fails(.protocolVersion), versions: [.tls1_2]) { plan in
        plan.configuration.minimumVersion = .tls13
      }),
    Row(
      "ssl-v2, ssl-v3",
      note: "Debian's OpenSSL has neither: their answers are written by hand. SSL 2 does not look like TLS at all.",
      trial("SSL 3", .fails(.protocolVersion), by: [.ours], versions: [.tls1_2]) { plan in
        plan.script = HandWrittenTLS.hello(version: 0x0300, cipher: 0x002f)
      },
      trial("SSL 2", .fails(.notTLS), by: [.ours], versions: [.tls1_2]) { plan in
        // SERVER-HELLO: no session, X.509, version 2, no certificate, one cipher, 16 bytes of connection identifier.
        let hello: [UInt8] =
          [4, 0, 1, 0, 2, 0, 0, 0, 3, 0, 16, 1, 0, 0x80] + [UInt8](repeating: 7, count: 16)
        plan.script = HandWrittenTLS.script([0x80, UInt8(hello.count)] + hello)
      },
      trial("SSL 3's alert", .fails(.protocolVersion), by: [.ours], versions: [.tls1_2]) { plan in
        plan.script = HandWrittenTLS.script([21, 3, 0, 0, 2, 2, 70])
      }),
  ]

  // MARK: - Diffie-Hellman

  static let groupRows: [Row] = [
    Row(
      "dh480, dh512, dh1024, dh-small-subgroup, dh-composite",
      note: "Below 2048 bits a group is refused for its size, whatever else is wrong with it. Of larger ones OpenSSL "
        + "looks only at the size and the range of the server's share: that the modulus is a safe prime is our own check.",
      // OpenSSL's servers refuse groups below 1024 bits at every level.
      handWritten("480", .prime480),
      handWritten("512", .prime512),
      // Refused before any computation, whatever the signature is. OpenSSL itself computes up to 10,000 bits.
      handWritten("4104", .odd(4104), .keyTooLarge), handWritten("10,000", .odd(10_000), .keyTooLarge),
      handWritten("12,000", .odd(12_000), .keyTooLarge), handWritten("40,000", .odd(40_000), .keyTooLarge),
      dh("1024", .fails(.weakKey), .prime1024),
      dh("composite, 1024", .fails(.weakKey), .composite1024),
      dh("small subgroup, 1024", .fails(.weakKey), .small1024),
      dh("composite, 2048", .fails(.weakKey), .composite2048),
      dh("small subgroup, 2048", .fails(.weakKey), .small2048), dh("RFC 5114", .fails(.weakKey), .rfc5114)),
    Row(
      "dh2048",
      note: "With the switch alone: groups without elliptic curves are not offered otherwise.",
      trial("without the switch", .fails(.noSharedCipher), versions: [.tls1_2]) { plan in
        try plan.presentRSA()
        plan.ciphers = "DHE-RSA-AES128-GCM-SHA256"
        plan.dhParameters = TLSGroup.ffdhe2048.parameters
      },
      dh("ffdhe2048", .answered(200), .ffdhe2048),
      dh("2048 bits that have no name", .answered(200), .prime2048)),
  ]

  private static func dh(_ name: String, _ outcome: TLSOutcome, _ group: TLSGroup) -> Trial {
    trial(name, outcome, versions: [.tls1_2]) { plan in
      try plan.presentRSA()
      (plan.ciphers, plan.isWeak) = ("DHE-RSA-AES128-GCM-SHA256", true)
      plan.dhParameters = group.parameters
      plan.configuration.dangerouslyAllowsLegacyKeyExchange = true
    }
  }

  private static func handWritten(
    _ name: String, _ group: TLSGroup, _ problem: TLSError.Problem = .weakKey
  ) -> Trial {
    trial(name, .fails(problem), by: [.ours], versions: [.tls1_2]) { plan in
      try plan.presentRSA()
      plan.configuration.dangerouslyAllowsLegacyKeyExchange = true
      plan.script = HandWrittenTLS.diffieHellman(plan, group)
    }
  }
}
