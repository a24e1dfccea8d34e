import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// The order of a task's calls, whatever the server does and whatever the program does meanwhile.
///
/// A round is one task of one session. The server follows a random script, the program a random list of calls, some of
/// them from within the delegate's. What was called is then read as a sentence of the documented grammar.
@Suite struct DelegateOrderTests {
  @Test(.timeLimit(.minutes(3))) func callsComeInTheDocumentedOrder() async throws {
    var dice = SeededGenerator(for: "delegate order")
    for number in 0..<200 {
      let round = OrderRound(&dice)
      let log = try await round.run()
      let problems = round.problems(of: log)
      #expect(problems.isEmpty, "round \(number): \(problems)\n\(round)\n\(log)")
      if !problems.isEmpty { return }
    }
  }

  /// The check has to be able to fail.
  @Test func aWrongOrderIsSeen() {
    var dice = SeededGenerator(seed: 1)
    var round = OrderRound(&dice)
    round.redirects = 1
    round.end = .whole
    round.kind = .data
    round.redirectRefused = nil
    round.pieces = ["abc", "def"]
    let good = ["create", "redirect", "response", "data \(round.body)", "metrics", "end", "invalid"]
    #expect(round.problems(of: good).isEmpty)
    for index in good.indices {
      var fewer = good
      fewer.remove(at: index)
      // Without redirections there is one response less to hear of, and the server's word is not to be seen in the log.
      if good[index] != "redirect" { #expect(!round.problems(of: fewer).isEmpty, "\(fewer)") }
      #expect(!round.problems(of: good + [good[index]]).isEmpty)
      guard index > 0 else { continue }
      var swapped = good
      swapped.swapAt(index - 1, index)
      #expect(!round.problems(of: swapped).isEmpty, "\(swapped)")
    }
  }
}
