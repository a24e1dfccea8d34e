import LarkspurHTTP
import Testing

@Suite struct RetryRulesTests {
  private let rules = RetryRules()

  private func attempt(
    _ failure: RetryRules.Attempt.Failure, number: Int = 1, _ method: String = "GET", key: Bool = false
  ) -> RetryRules.Attempt {
    RetryRules.Attempt(number: number, method: method, hasIdempotencyKey: key, failure: failure)
  }

  @Test(arguments: [408, 425, 429, 500, 502, 503, 504])
  func statusCodesThatAreRepeated(status: Int) {
    #expect(rules.delay(after: attempt(.status(status, retryAfter: nil)), fraction: 1) == .milliseconds(500))
  }

  @Test(arguments: [200, 206, 304, 400, 401, 403, 404, 409, 416, 501, 505])
  func statusCodesThatAreDelivered(status: Int) {
    #expect(rules.delay(after: attempt(.status(status, retryAfter: 0)), fraction: 1) == nil)
  }

  /// RFC 9110 9.2.2.
  @Test(arguments: [
    ("GET", true), ("HEAD", true), ("OPTIONS", true), ("TRACE", true), ("PUT", true), ("DELETE", true),
    ("POST", false), ("PATCH", false), ("CONNECT", false), ("get", false),
  ])
  func methods(method: String, isRepeated: Bool) {
    for failure in [RetryRules.Attempt.Failure.status(503, retryAfter: nil), .error(isOfConnection: true)] {
      #expect((rules.delay(after: attempt(failure, method), fraction: 1) != nil) == isRepeated)
      #expect(rules.delay(after: attempt(failure, method, key: true), fraction: 1) != nil)
      var all = rules
      all.repeatsAllMethods = true
      #expect(all.delay(after: attempt(failure, method), fraction: 1) != nil)
    }
  }

  @Test func errors() {
    #expect(rules.delay(after: attempt(.error(isOfConnection: true)), fraction: 0) == .zero)
    #expect(rules.delay(after: attempt(.error(isOfConnection: false)), fraction: 0) == nil)
  }

  @Test(arguments: [(1, true), (2, true), (3, false), (4, false)])
  func attempts(number: Int, isRepeated: Bool) {
    let failed = attempt(.error(isOfConnection: true), number: number)
    #expect((rules.delay(after: failed, fraction: 0.5) != nil) == isRepeated)
  }

  /// The delay doubles up to its limit, and is a random part of that.
  @Test(arguments: [
    (1, 1.0, 500), (1, 0.5, 250), (1, 0.0, 0), (2, 1.0, 1000), (3, 1.0, 2000), (7, 1.0, 30_000), (1000, 1.0, 30_000),
    (1, 7.0, 500), (1, -1.0, 0), (1, .nan, 0),
  ])
  func delays(number: Int, fraction: Double, milliseconds: Int) {
    var rules = rules
    rules.attemptsMax = .max
    #expect(
      rules.delay(after: attempt(.error(isOfConnection: true), number: number), fraction: fraction)
        == .milliseconds(milliseconds))
  }

  /// RFC 9110 10.2.3.
  @Test(
    arguments: [
      (0, .milliseconds(500)), (2, .seconds(2)), (60, .seconds(60)), (61, nil), (.infinity, nil),
      (-5, .milliseconds(500)), (.nan, .milliseconds(500)),
    ] as [(Double, Duration?)])
  func whatTheServerAsksFor(seconds: Double, delay: Duration?) {
    #expect(rules.delay(after: attempt(.status(429, retryAfter: seconds)), fraction: 1) == delay)
  }

  @Test func oddRules() {
    var rules = RetryRules()
    (rules.attemptsMax, rules.firstDelay, rules.delayMax) = (5, .seconds(-1), .seconds(-1))
    #expect(rules.delay(after: attempt(.error(isOfConnection: true)), fraction: 1) == .zero)
    rules.attemptsMax = -3
    #expect(rules.delay(after: attempt(.error(isOfConnection: true)), fraction: 1) == nil)
  }
}
