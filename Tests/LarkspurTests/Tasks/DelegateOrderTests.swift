import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests the order of a task's delegate calls, whatever the server and the program do.
///
/// A round is one task of one session. The server follows a random script, and the program makes random calls, some of
/// them inside delegate methods. The recorded calls are then checked against the documented order.
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

  /// The check reports missing, repeated and swapped calls.
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
      // The log does not show how many redirections the server has sent, so the check cannot notice a missing one.
      if good[index] != "redirect" { #expect(!round.problems(of: fewer).isEmpty, "\(fewer)") }
      #expect(!round.problems(of: good + [good[index]]).isEmpty)
      guard index > 0 else { continue }
      var swapped = good
      swapped.swapAt(index - 1, index)
      #expect(!round.problems(of: swapped).isEmpty, "\(swapped)")
    }
  }
}
