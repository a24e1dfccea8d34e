import LarkspurTLS
import LarkspurTestServer
import Synchronization

// Sessions that are resumed, and sessions that must not be.

extension TLSMatrix {
  static let ourSessionRows: [Row] = [
    Row(
      "ours: resumption with changed cert",
      note: "A session goes on with the trust that it was made in: name, pins and the caller's decision are looked at "
        + "again, by the chain of the first handshake. What the server has for a certificate meanwhile is not seen, by the "
        + "rules of TLS. Sessions belong to a configuration, so that other pins begin with a full handshake.",
      twice("the same certificate, the same server", mustResume: true) { _ in },
      twice("the caller refuses the second time", .fails(.refusedByCaller)) { plan in
        let counter = Counter()
        plan.decideTrust = { _ in counter.next() == 1 ? .verified : .refused }
      },
      restart("another good certificate") { plan in plan.present(try plan.authorities.leaf()) },
      restart("a certificate for another host", .fails(.wrongHost)) { plan in
        try plan.presentLeaf { $0.alternativeNames = [.dns("b.test")] }
      },
      restart("a certificate that nobody trusts", .fails(.untrustedRoot)) { plan in
        plan.present(try TestCA().issue(.init(names: ["a.test"])))
      },
      restart("a certificate that does not fit the pins", .pinMismatch, isPinned: true) { plan in
        plan.present(try plan.authorities.leaf())
      },
      restart("the key that is pinned, in a new certificate", isPinned: true) { plan in
        let key = plan.key
        try plan.presentLeaf { $0.privateKeyDER = key }
      }),
    Row(
      "ours: ticket for other SNI",
      Trial(name: "real servers", outcome: .answered(200)) { kind, plan in
        var plan = plan
        try plan.presentLeaf { $0.alternativeNames = [.dns("a.test"), .dns("b.test")] }
        let server = try kind.start(plan)
        return try await visitBothNames(server, plan)
      },
      scenario("what is offered") { plan in
        var plan = plan
        try plan.presentLeaf { $0.alternativeNames = [.dns("a.test"), .dns("b.test")] }
        let server = try TestServer(plan)
        let visit = try await visitBothNames(server, plan)
        // pre_shared_key, RFC 8446 4.2.11.
        let offered = server.handshakes.map { $0.extensionsOffered.contains(41) }
        let expected = plan.versions.lowerBound == .tls1_3 ? [false, false, true] : [false, false, false]
        return offered == expected ? visit : visit.but("offered: \(offered)")
      }),
  ]

  /// Visits both names, and returns the last visit, which has to be the only resumed one.
  private static func visitBothNames(_ server: any TLSServer, _ plan: TLSPlan) async throws -> TLSVisit {
    let client = try TLSClient(plan)
    var visits: [TLSVisit] = []
    for name in ["a.test", "b.test", "a.test"] { visits.append(try await client.visit(server, as: name)) }
    let resumed = visits.map { $0.handshake?.isResumed }
    return resumed == [false, false, true] ? visits[2] : visits[2].but("resumed: \(resumed)")
  }

  private final class Counter: Sendable {
    private let count = Mutex(0)
    func next() -> Int {
      count.withLock {
        $0 += 1
        return $0
      }
    }
  }

  /// Two visits of one client to one server.
  private static func twice(
    _ name: String, _ outcome: TLSOutcome = .answered(200), mustResume: Bool = false,
    _ arrange: @escaping @Sendable (inout TLSPlan) throws -> Void
  ) -> Trial {
    Trial(name: name, outcome: outcome) { kind, plan in
      var plan = plan
      try arrange(&plan)
      let server = try kind.start(plan)
      let client = try TLSClient(plan)
      let first = try await client.visit(server, as: plan.host)
      guard first.outcome == .answered(200) else { return first.but("the first visit: \(first.outcome)") }
      let second = try await client.visit(server, as: plan.host)
      return mustResume && second.isResumed != true ? second.but("it was not resumed") : second
    }
  }

  /// A visit, and another one after a restart of the server at the same port with other ticket keys.
  private static func restart(
    _ name: String, _ outcome: TLSOutcome = .answered(200), isPinned: Bool = false,
    _ change: @escaping @Sendable (inout TLSPlan) throws -> Void
  ) -> Trial {
    Trial(name: name, outcome: outcome) { kind, plan in
      var plan = plan
      if isPinned {
        let pins = Set(try plan.authorities.certificates(plan.chain[0]).map(\.pin))
        plan.configuration.pins = PinPolicy([PinPolicy.Host("a.test", pins: pins)].compactMap(\.self))
      }
      let client = try TLSClient(plan)
      let port = try await {
        let server = try kind.start(plan)
        let first = try await client.visit(server, as: plan.host)
        return first.outcome == .answered(200) ? server.tcpPort : nil
      }()
      guard let port else { throw RealServer.Unavailable(description: "the first visit failed") }
      try change(&plan)
      let second = try await client.visit(kind.start(plan, port: port), as: plan.host)
      return second.isResumed == true ? second.but("it was resumed") : second
    }
  }
}

extension TLSVisit {
  var isResumed: Bool? { handshake?.isResumed }
}
