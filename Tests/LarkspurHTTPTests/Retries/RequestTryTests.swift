import LarkspurHTTP
import Testing

/// When a request may be sent once more (RFC 9112 9.3.1, RFC 9110 9.2.2 and 15.5.9).
@Suite struct RequestTryTests {
  /// A row of the table: the facts that differ from those of an idempotent request that was lost on a kept connection.
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var isOverFresh = false
    var isBodyRepeatable = true
    var isIdempotent = true
    var isStarted = true
    var followsIdleTime = true
    var hasReceived = false
    var holdsBody = false
    /// The ends after which the request may be sent once more.
    let ends: Set<RequestTry.Outcome>
  }

  static let rows = [
    Row(testDescription: "idempotent", ends: [.unsent, .lost, .refusedAsLate]),
    Row(testDescription: "not idempotent", isIdempotent: false, ends: [.unsent]),
    Row(
      testDescription: "not idempotent, its body not sent", isIdempotent: false, holdsBody: true,
      ends: [.unsent, .lost, .refusedAsLate]),
    Row(testDescription: "over a connection that was not idle", followsIdleTime: false, ends: [.unsent]),
    Row(testDescription: "a response had begun", hasReceived: true, ends: [.unsent, .refusedAsLate]),
    Row(testDescription: "a body that cannot be repeated", isBodyRepeatable: false, ends: []),
    Row(
      testDescription: "a body that cannot be repeated, not begun", isBodyRepeatable: false, isStarted: false,
      followsIdleTime: false, ends: [.unsent]),
    Row(testDescription: "over a fresh connection", isOverFresh: true, ends: []),
    Row(testDescription: "a fresh connection that was closed", isOverFresh: true, isStarted: false, ends: []),
  ]

  @Test(arguments: rows) func theEndsThatAllowAnotherTry(row: Row) {
    var attempt = RequestTry(
      isOverFresh: row.isOverFresh, isBodyRepeatable: row.isBodyRepeatable, isIdempotent: row.isIdempotent)
    attempt.isStarted = row.isStarted
    attempt.followsIdleTime = row.followsIdleTime
    attempt.hasReceived = row.hasReceived
    attempt.holdsBody = row.holdsBody
    let ends: [RequestTry.Outcome] = [.unsent, .lost, .refusedAsLate, .failed]
    #expect(Set(ends.filter(attempt.mayBeRepeated)) == row.ends)
  }
}
