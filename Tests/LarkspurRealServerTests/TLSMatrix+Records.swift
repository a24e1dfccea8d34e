import LarkspurHTTP
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

// Servers that break the rules of TLS, or that follow them in an unusual way.

extension TLSMatrix {
  static let ourRecordRows: [Row] = [
    Row(
      "ours: alert mid-body",
      script(
        "internal_error", .fails(.alert(TLSAlert(number: 80))), then: [.send(lengthHead + "hello"), .sendAlert(80)]),
      script(
        "a body without a length", .fails(.alert(TLSAlert(number: 80))),
        then: [.send(endlessHead + "hello"), .sendAlert(80)]),
      script(
        "user_canceled, a warning that means nothing",
        then: [.send(lengthHead + "hello"), .sendAlert(90, isFatal: false), .send(", world")]),
      script(
        "a warning, and then the connection is cut", .fails(.truncated),
        then: [.send(endlessHead + "hello"), .sendAlert(90, isFatal: false), .closeWithoutNotify]),
      script(
        "a warning, and then what is no TLS", .fails(.protocolViolation),
        then: [.send(lengthHead), .sendAlert(90, isFatal: false), .sendBelowTLS([23, 3, 3, 0x80, 0]), .hang])),
    Row(
      "ours: renegotiation (TLS1.2)",
      note: "Refused by the alert no_renegotiation. OpenSSL's server ends the connection when it sees that.",
      renegotiation(
        "the server goes on without", then: [.requestRenegotiation, .send(lengthHead + "hello, world"), .expectClose]),
      renegotiation(
        "the server waits for it", .fails(.alert(TLSAlert(number: 40))), then: [.requestRenegotiation, .expectClose])),
    Row(
      "ours: TLS1.3 KeyUpdate flood",
      note: "Each is answered into the connection's one buffer: when that is full, nothing more is read before it has "
        + "left.",
      script("a thousand", versions: [.tls1_3], then: [.updateKey(times: 1000), .send(lengthHead + "hello, world")]),
      script(
        "a thousand that want answers", versions: [.tls1_3],
        // If the server left the answers unread, its close would reset the connection and drop the response.
        then: [.updateKey(isRequested: true, times: 1000), .send(lengthHead + "hello, world"), .expectClose])),
    Row(
      "ours: post-handshake NewSessionTicket x1000",
      note: "The last four are kept.",
      scenario("four are used", versions: [.tls1_3]) { plan in
        var plan = plan
        plan.ours = { $0.ticketCount = 0 }
        let server = try TestServer(plan)
        server.enqueue([.expectRequest, .sendTickets(1000), .send(lengthHead + "hello, world"), .close])
        let client = try TLSClient(plan)
        var visit = try await client.visit(server, as: plan.host)
        var resumed = [visit.handshake?.isResumed]
        for _ in 0..<5 where visit.outcome == .answered(200) {
          visit = try await client.visit(server, as: plan.host)
          resumed.append(visit.handshake?.isResumed)
        }
        return resumed == [false, true, true, true, true, false] ? visit : visit.but("resumed: \(resumed)")
      }),
    Row(
      "ours: 1-byte TLS records",
      trial("all of the response", by: [.ours]) { plan in plan.ours = { $0.recordBytesMax = 1 } },
      script(
        "and segments", then: [.setSegment(bytes: 1), .send(lengthHead + "hello, world")]),
      trial("a handshake in segments of one byte", by: [.ours]) { plan in
        plan.script = [.beforeHandshake, .setSegment(bytes: 1), .handshake, .serveRoutes]
      },
      script(
        "empty records in between",
        then: [.send(lengthHead)] + [.repeat(20, [.sendRecord(type: 23, [])]), .send("hello, world")])),
    Row(
      "ours: 16 KiB+1 record",
      overflow("plaintext", .sendRecord(type: 23, [UInt8](repeating: 120, count: 16_385))),
      overflow("ciphertext", .sendBelowTLS([23, 3, 3, 0x80, 0])),
      script(
        "16 KiB",
        then: [
          .send("HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n"),
          .sendRecord(type: 23, [UInt8](repeating: 120, count: 16_384)),
        ])),
    Row(
      "ours: handshake stall at each message",
      of: [0, 3, 5, 60, 130, 300, 700, 1000].map { count in
        stall("after \(count) bytes", [.tls1_2, .tls1_3], [.stall(afterSending: count), .handshake])
      } + [
        stall("before the server's first flight", [.tls1_2, .tls1_3], [.handshake(stallingBeforeFlight: 1)]),
        stall("before the server's Finished", [.tls1_2], [.handshake(stallingBeforeFlight: 2)]),
      ]),
    Row(
      "ours: ALPN selects h2 though not offered",
      // OpenSSL checks this by itself, and reports a bad extension.
      trial("h2", .fails(.protocolViolation), by: [.ours]) { plan in plan.ours = { $0.alpn = .answer("h2") } },
      trial("nothing but h2", .fails(.noSharedProtocol), by: [.ours]) { plan in
        plan.ours = { $0.alpn = .insist(["h2"]) }
      },
      trial("nothing at all", by: [.ours]) { plan in plan.ours = { $0.alpn = .ignore } },
      trial("http/1.1", by: [.ours]) { plan in plan.ours = { $0.alpn = .answer("http/1.1") } }),
  ]

  private static func renegotiation(
    _ name: String, _ outcome: TLSOutcome = .answered(200), then steps: [TestServer.Step]
  ) -> Trial {
    scenario(name, outcome, versions: [.tls1_2]) { plan in
      let server = try TestServer(plan)
      server.enqueue(.init([.expectRequest] + steps))
      let visit = try await TLSClient(plan).visit(server, as: plan.host)
      try await server.waitForClosedConnections(1)
      let handshake = server.handshakes.first
      let isRefused = handshake?.alertsReceived.contains { $0.number == 100 } == true
      return isRefused && handshake?.renegotiations == 0
        ? visit : visit.but("it was not refused: \(String(describing: handshake)), \(visit.outcome)")
    }
  }

  /// A record that is too long, and the alert with which the client answers.
  private static func overflow(_ name: String, _ step: TestServer.Step) -> Trial {
    scenario(name, .fails(.protocolViolation)) { plan in
      let server = try TestServer(plan)
      server.enqueue([.expectRequest, .send(lengthHead), step, .expectClose])
      let visit = try await TLSClient(plan).visit(server, as: plan.host)
      try await server.waitForClosedConnections(1)
      let alerts = server.handshakes.first?.alertsReceived.map(\.number)
      return alerts == [22] ? visit : visit.but("alerts: \(alerts ?? [])")
    }
  }

  private static func stall(_ name: String, _ versions: [TLSPlan.Version], _ steps: [TestServer.Step]) -> Trial {
    trial(name, .fails(.handshakeTimedOut), by: [.ours], versions: versions) { plan in
      plan.patience = .milliseconds(100)
      plan.script = .init([.beforeHandshake] + steps + [.hang])
    }
  }

  /// A trial with more than one visit, or with a check of the server afterwards.
  static func scenario(
    _ name: String, _ outcome: TLSOutcome = .answered(200), versions: [TLSPlan.Version] = [.tls1_2, .tls1_3],
    by servers: [TLSServerKind] = [.ours], _ run: @escaping @Sendable (TLSPlan) async throws -> TLSVisit
  ) -> Trial {
    Trial(name: name, outcome: outcome, servers: servers, versions: versions) { _, plan in try await run(plan) }
  }
}

extension TLSVisit {
  /// Returns this visit with an unexpected outcome, described by `message`.
  func but(_ message: String) -> TLSVisit {
    var visit = self
    visit.outcome = .unexpected(message)
    return visit
  }
}
