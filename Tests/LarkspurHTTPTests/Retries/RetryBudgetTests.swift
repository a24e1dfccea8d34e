import LarkspurHTTP
import Testing

@Suite struct RetryBudgetTests {
  /// A server that fails every request gets a fifth more of them, and the reserve.
  @Test func aStorm() {
    var budget = RetryBudget()
    var repetitions = 0
    for _ in 0..<1000 {
      budget.requested()
      while budget.takeRepetition() { repetitions += 1 }
    }
    #expect((200...210).contains(repetitions))
  }

  @Test func theReserveIsNotExceeded() {
    var budget = RetryBudget(share: 0.5, reserve: 3)
    for _ in 0..<100 { budget.requested() }
    #expect(budget.tokens == 3)
    let repetitions = (0..<4).map { _ in budget.takeRepetition() }
    #expect(repetitions == [true, true, true, false])
  }

  /// Without a reserve a token is saved up first.
  @Test func noReserve() {
    var budget = RetryBudget(share: 0.5, reserve: 0)
    let repetitions = (0..<5).map { step in
      if step == 1 || step == 3 { budget.requested() }
      return budget.takeRepetition()
    }
    // Two requests pay for one.
    #expect(repetitions == [false, false, false, true, false])
  }

  @Test(arguments: [(Double.nan, Double.nan, 0.0), (7, -1, 1), (-1, 2, 0)])
  func oddValues(share: Double, reserve: Double, expected: Double) {
    let budget = RetryBudget(share: share, reserve: reserve)
    #expect(budget.share == expected && budget.reserve >= 0)
  }
}
