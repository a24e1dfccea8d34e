import LarkspurTLS
import LarkspurTestServer
import TestKit
import Testing

/// The corpus of good and bad TLS, against real servers with certificates that the tests make.
@Suite(.serialized, .ownThread) struct TLSMatrixTests {
  /// The parts of the corpus that the tests read.
  private struct Corpus: Decodable {
    struct Site: Decodable {
      var subdomain: String
    }
    struct Extra: Decodable {
      var `case`: String
    }
    var badssl: [Site]
    var extra: [Extra]
  }

  /// The table has every row of the corpus, and no other.
  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func theTableHasEveryRow() throws {
    let corpus = try Corpora.decode(Corpus.self, from: "tls-matrix/badssl.json")
    let names = corpus.badssl.map(\.subdomain) + corpus.extra.map(\.case)
    #expect(!names.isEmpty)
    let known = TLSMatrix.rows.map(\.name)
    #expect(Set(names).subtracting(known) == [], "rows that the table does not know")
    #expect(Set(known).subtracting(names) == [], "rows that the corpus does not have")
    #expect(Set(known).count == known.count, "rows that the table has twice")
    for row in TLSMatrix.rows where row.trials.isEmpty {
      #expect(row.note != nil, "\(row.name) is neither tried nor explained")
    }
  }

  @Test(arguments: TLSMatrix.rows.filter { !$0.trials.isEmpty }) func row(_ row: TLSMatrix.Row) async throws {
    for trial in row.trials {
      for version in trial.versions {
        for kind in trial.servers {
          let plan = try TLSPlan(.get(), version)
          let context = "\(row.name), \(trial.name), \(kind), \(version)"
          do {
            let visit = try await trial.run(kind, plan)
            #expect(visit.outcome == trial.outcome, "\(context)")
            guard case .answered = visit.outcome, let handshake = visit.handshake else { continue }
            #expect(handshake.version.rawValue == version.rawValue, "\(context)")
          } catch let error as RealServer.Unavailable {
            Issue.record("\(context): \(error)")
          }
        }
      }
    }
  }
}
