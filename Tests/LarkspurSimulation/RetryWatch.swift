import LarkspurClient
import LarkspurEngine
import LarkspurHTTP

/// A retry policy of a world's client, and the checks of its attempts. The watch is an interceptor in front of the policy.
///
/// All of it runs on the world's one thread.
final class RetryWatch: HTTPClient.Interceptor, QuickInterceptor, @unchecked Sendable {
  let policy: HTTPClient.RetryPolicy
  private let budget: RetryBudget
  private let oracle: Oracle
  private let kernel: SimulatedKernel
  private var requests = 0
  private(set) var repetitions = 0
  /// The earliest time of a request's next attempt, in nanoseconds, by its number.
  private var earliest: [Int: UInt64] = [:]

  /// - Parameter defect: A defect of the policy, which the checks have to find.
  init(
    _ faults: FaultProfile, _ oracle: Oracle, _ kernel: SimulatedKernel, defect: Scenario.Defect?,
    _ random: inout SeededRandom
  ) {
    self.oracle = oracle
    self.kernel = kernel
    budget = RetryBudget(share: random.pick([0, 0.2, 1]), reserve: Double(random.pick([0, 1, 10])))
    var rules = RetryRules()
    rules.attemptsMax = random.number(1...5)
    rules.firstDelay = .nanoseconds(random.pick([0, milliseconds(500), seconds(5)]))
    let fractions = Fractions(random: random.fork())
    rules.repeatsAllMethods = defect == .allMethods
    let spent = defect == .overspending ? RetryBudget(share: 1, reserve: 1_000) : budget
    var policy = HTTPRetryPolicy(rules: rules, budget: spent) { fractions.next() }
    if !faults.isCalm, random.chance(1, of: 4) { policy.attemptTimeout = .nanoseconds(random.time(0...seconds(10))) }
    self.policy = policy
  }

  /// Draws the time limit of the client's requests, in nanoseconds, or `nil` for none.
  func drawTimeMax(_ faults: FaultProfile, _ random: inout SeededRandom) -> UInt64? {
    !faults.isCalm && random.chance(1, of: 4) ? random.time(1...seconds(100)) : nil
  }

  /// Random numbers from 0 to 1 of the world's seed.
  private final class Fractions: @unchecked Sendable {
    private var random: SeededRandom
    init(random: SeededRandom) { self.random = random }
    func next() -> Double { Double(random.number(0...1_000)) / 1_000 }
  }

  private func number(of request: HTTPClient.Request) -> Int? { oracle.request(in: request.url.utf8.dropFirst(7)) }

  func adapt(_ request: HTTPClient.Request, attempt: Int) async throws -> HTTPClient.Request {
    guard let number = number(of: request) else {
      oracle.complain("an interceptor got \(request.url), which no script has asked for")
      return request
    }
    kernel.note("attempt", number, attempt)
    oracle.made(attempt: attempt, of: number)
    oracle.check(attempt <= policy.rules.attemptsMax, "request \(number): attempt \(attempt)")
    if attempt == 1 { requests += 1 } else { repetitions += 1 }
    let repetitionsMax = budget.reserve + budget.share * Double(requests)
    oracle.check(
      Double(repetitions) <= repetitionsMax + 1e-6, "\(repetitions) repetitions of \(requests) requests")
    oracle.check(
      kernel.time >= earliest[number] ?? 0, "request \(number) is repeated before the server has asked for it")
    return request
  }

  func decide(after attempt: HTTPClient.InterceptedAttempt) async -> HTTPClient.InterceptorDecision {
    let asked = attempt.fields.values(named: "Retry-After").first.flatMap { text in
      text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(text) : nil
    }
    if let number = number(of: attempt.request), attempt.error == nil, let asked {
      earliest[number] = kernel.time + seconds(min(asked, 1_000))
    }
    return .deliver
  }
}
