import LarkspurTLS
import LarkspurTestServer

// Client certificates, and rows that do not concern TLS alone.

extension TLSMatrix {
  static let clientRows: [Row] = [
    Row(
      "client",
      trial("with an identity") { plan in
        plan.clients = .required
        plan.configuration.identity = try plan.authorities.identity()
      },
      trial("without, s_server", .fails(.clientCertificateRequired), by: [.openssl]) { $0.clients = .required },
      // nginx finishes the handshake, and then answers with an error.
      trial("without, nginx", .answered(400), by: [.nginx]) { $0.clients = .required },
      trial("of an unknown authority, s_server", .fails(.clientCertificateRefused), by: [.openssl]) { plan in
        plan.clients = .required
        plan.configuration.identity = try plan.authorities.identity(by: plan.authorities.middle)
      },
      trial("of an unknown authority, nginx", .answered(400), by: [.nginx]) { plan in
        plan.clients = .required
        plan.configuration.identity = try plan.authorities.identity(by: plan.authorities.middle)
      },
      trial("asked, and without") { $0.clients = .asked },
      trial("not asked, and with an identity") { plan in
        plan.configuration.identity = try plan.authorities.identity()
      }),
    Row(
      "client-cert-missing",
      trial("asked, none sent", .answered(400), by: [.nginx]) { plan in
        plan.clients = .asked
        plan.nginxLines = "if ($ssl_client_verify != SUCCESS) { return 400; }"
      },
      trial("asked, one sent", by: [.nginx]) { plan in
        plan.clients = .asked
        plan.nginxLines = "if ($ssl_client_verify != SUCCESS) { return 400; }"
        plan.configuration.identity = try plan.authorities.identity()
      }),
  ]

  static let policyRows: [Row] = [
    Row(
      "hsts, upgrade, preloaded-hsts, subdomain.preloaded-hsts",
      note: "Not offered yet: HSTS is a matter of URLs and of memory, above the transport. The field arrives as any "
        + "other.",
      trial("the field arrives", by: [.nginx]) { plan in
        plan.nginxLines = "add_header Strict-Transport-Security max-age=31536000;"
      }),
    Row("mixed*", note: "Only browsers mix what comes from several servers into one page."),
    Row(
      "http, http-*",
      note: "Forms and passwords on plain pages concern browsers. Plain HTTP itself is what all other tests speak.",
      Trial(name: "plain", outcome: .answered(200), servers: [.nginx], versions: [.tls1_3]) { kind, plan in
        var plan = plan
        plan.isPlain = true
        return try await TLSClient(plan).visitPlainly(kind.start(plan))
      }),
  ]
}
