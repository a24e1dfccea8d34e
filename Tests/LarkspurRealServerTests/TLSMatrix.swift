import LarkspurTLS
import LarkspurTestServer
import Testing

/// Every row of the corpus: its trials with their outcomes, or the reason why there are none.
enum TLSMatrix {
  static let rows =
    certificateRows + issuerRows + revocationRows + protocolRows + groupRows + clientRows + policyRows + ourNameRows
    + ourIssuerRows + ourStreamRows + ourRecordRows + ourSessionRows

  struct Row: Sendable {
    /// The row's `subdomain` or `case`, verbatim.
    let name: String
    /// The decision where the corpus leaves the outcome open, or the reason why there are no trials.
    let note: String?
    let trials: [Trial]

    init(_ name: String, note: String? = nil, _ trials: Trial...) {
      self.name = name
      self.note = note
      self.trials = trials
    }

    init(_ name: String, note: String? = nil, of trials: [Trial]) {
      self.name = name
      self.note = note
      self.trials = trials
    }
  }

  /// A visit or several, tried with each of some servers and TLS versions.
  struct Trial: Sendable {
    let name: String
    let outcome: TLSOutcome
    var servers: [TLSServerKind] = [.openssl, .nginx]
    var versions: [TLSPlan.Version] = [.tls1_2, .tls1_3]
    let run: @Sendable (TLSServerKind, TLSPlan) async throws -> TLSVisit
  }

  /// One visit to one server.
  static func trial(
    _ name: String, _ outcome: TLSOutcome = .answered(200), by servers: [TLSServerKind] = [.openssl, .nginx],
    versions: [TLSPlan.Version] = [.tls1_2, .tls1_3], _ arrange: @escaping @Sendable (inout TLSPlan) throws -> Void
  ) -> Trial {
    Trial(name: name, outcome: outcome, servers: servers, versions: versions) { kind, plan in
      var plan = plan
      try arrange(&plan)
      return try await plan.play(on: kind)
    }
  }

  /// One visit to a server whose certificate has changes.
  static func leaf(
    _ name: String, _ outcome: TLSOutcome = .answered(200),
    _ change: @escaping @Sendable (inout TestCertificate.Request) -> Void
  ) -> Trial {
    trial(name, outcome) { plan in try plan.presentLeaf(change) }
  }
}

extension TLSMatrix.Trial: CustomStringConvertible {
  var description: String { name }
}

extension TLSMatrix.Row: CustomTestStringConvertible {
  var testDescription: String { name }
}
