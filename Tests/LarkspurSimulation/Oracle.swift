import LarkspurHTTP

/// Records requests and answers, and checks them against the rules.
final class Oracle {
  struct Request {
    let method: String
    /// The head and the body as the server has to receive them.
    let bytes: [UInt8]
    let headBytes: Int
    /// Whether the request has an `Idempotency-Key`.
    var hasKey = false
    /// The number of attempts that a retry policy has made.
    var passes = 1
    /// The connections to which a byte of the request was written. `reported` is the number of the server's bytes that
    /// had been reported to the loop by then, or 0 for a connection's first request and for one that follows unanswered
    /// requests.
    var attempts: [(link: Int, reported: Int)] = []
    var ends = 0

    var isSafe: Bool { method == "GET" || method == "HEAD" }
    var isIdempotent: Bool { method != "POST" }
    var mayHaveBody: Bool { method != "HEAD" }
  }

  struct Answer {
    /// The request that this answers, or `nil` for an answer that was not requested.
    let request: Int?
    let link: SimulatedLink
    let body: Int
    let framing: ServerAnswer.Framing
    /// Number of body bytes that the server sends.
    var bodySent: Int
    /// Whether the head was altered, so that nothing can be predicted about the body.
    var isGarbled = false
    /// Offset of the answer in the bytes that the server sends on the connection.
    var start = 0
  }

  private(set) var requests: [Request] = []
  private(set) var answers: [Answer] = []
  private(set) var complaints: [String] = []
  private var garbledCount = 0
  /// Maximum number of complaints that are kept.
  private static let complaintsMax = 20

  func complain(_ message: String) {
    if complaints.count < Self.complaintsMax { complaints.append(message) }
  }

  func check(_ isFine: Bool, _ message: @autoclosure () -> String) {
    if !isFine { complain(message()) }
  }

  // MARK: - Requests

  func add(_ request: Request) -> Int {
    requests.append(request)
    return requests.count - 1
  }

  /// Returns the number of the request that begins with these bytes, or `nil` if none does.
  func request(in bytes: some Collection<UInt8>) -> Int? {
    let line = bytes.prefix(40)
    guard let slash = line.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    let digits = line[line.index(after: slash)...].prefix { $0 != UInt8(ascii: " ") }
    guard let number = Int(String(decoding: digits, as: UTF8.self)), requests.indices.contains(number) else {
      return nil
    }
    return number
  }

  /// Records that the kernel has accepted `count` bytes from the client.
  func taken(_ offered: [UInt8], _ count: Int, on link: SimulatedLink) {
    var offset = 0
    while offset < count {
      if link.requestBytesLeft == 0 {
        guard let number = request(in: offered[offset...]) else {
          return complain("connection \(link.number) was sent what is no request")
        }
        link.requestBytesLeft = requests[number].bytes.count
        began(number, on: link)
      }
      let part = min(link.requestBytesLeft, count - offset)
      link.requestBytesLeft -= part
      offset += part
    }
  }

  private func began(_ number: Int, on link: SimulatedLink) {
    // An answer that a server sends to a new connection by itself counts for the first request: the server may be
    // overloaded. For a request that follows unanswered ones, the unread bytes may belong to any of them.
    let isPipelined = link.latestRequest.map { requests[$0].ends == 0 } ?? true
    link.latestRequest = number
    requests[number].attempts.append((link.number, isPipelined ? 0 : link.reported))
    let request = requests[number]
    // A policy repeats requests on purpose, but never one that may have had an effect.
    let passes = request.isIdempotent || request.hasKey ? request.passes : 1
    check(
      request.attempts.count <= passes * (request.isSafe ? 3 : request.isIdempotent ? 2 : 1),
      "\(request.method) \(number) was sent on connections \(request.attempts.map(\.link))")
    check(request.ends == 0, "\(request.method) \(number) was sent after its end")
  }

  /// Records that a retry policy makes an attempt.
  func made(attempt: Int, of number: Int) {
    check(attempt == 1 || attempt == requests[number].passes + 1, "request \(number) skips to attempt \(attempt)")
    check(requests[number].ends == 0, "request \(number) is repeated after its end")
    requests[number].passes = attempt
  }

  func ended(_ number: Int) {
    requests[number].ends += 1
    check(requests[number].ends == 1, "request \(number) ended \(requests[number].ends) times")
  }

  // MARK: - Answers

  func add(_ answer: Answer) -> Int {
    answers.append(answer)
    if answer.isGarbled { garbledCount += 1 }
    return answers.count - 1
  }

  func began(_ answer: Int, at start: Int) { answers[answer].start = start }

  /// Returns one byte of an answer's body.
  static func byte(_ index: Int, of answer: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: (answer &* 31 &+ index &* 7) ^ (index >> 8))
  }

  /// Records that a head was delivered, and checks that it answers the request.
  ///
  /// - Returns: The answer to compare the body with, or `nil` if nothing can be predicted about the body.
  func delivered(_ serial: String?, to number: Int) -> Int? {
    guard let index = serial.flatMap({ Int($0) }), answers.indices.contains(index) else {
      check(garbledCount > 0, "request \(number) got a response that no server has sent")
      return nil
    }
    let answer = answers[index]
    if answer.request == number { return answer.isGarbled ? nil : index }
    // Responses on a connection carry no names, so a request that was sent before the client could know of a stray
    // response takes that response for its own. The end of the body depends on the request, so that it cannot be
    // predicted.
    let attempt = requests[number].attempts.last { $0.link == answer.link.number }
    check(
      attempt.map { $0.reported <= answer.start } ?? (answer.link.latestRequest == nil && answer.start == 0),
      "request \(number) got an answer to \(answer.request.map(String.init) ?? "nobody"), which was there before")
    return nil
  }

  /// Checks a piece of a delivered body.
  func delivered(_ piece: Span<UInt8>, at offset: Int, of answer: Int) {
    for index in piece.indices where piece[index] != Self.byte(offset + index, of: answer) {
      return complain("answer \(answer): byte \(offset + index) of the body is not what was sent")
    }
  }

  /// Checks a body that was delivered to its end.
  func completed(_ count: Int, of index: Int, to number: Int) {
    let answer = answers[index]
    guard requests[number].mayHaveBody, answer.framing != .none else {
      return check(count == 0, "request \(number) got a body of \(count) bytes, and there was none")
    }
    check(
      count == (answer.framing == .untilClose ? answer.bodySent : answer.body),
      "request \(number): \(count) of \(answer.body) bytes passed for all")
    if answer.framing == .untilClose {
      check(answer.link.hasSentEnd, "request \(number): a broken connection passed for a body's end")
    }
  }
}
