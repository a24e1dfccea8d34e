import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// Answers requests from a recording.
final class Player: Sendable {
  private struct State {
    /// The numbers of the entries that have answered.
    var used: Set<Int> = []
    /// The next entry of the recorded order.
    var next = 0
    /// How many requests each fault has struck.
    var strikes: [Int]
  }

  private let entries: [TestServer.Recording.Entry]
  private let replay: TestServer.Replay
  private let state: Mutex<State>
  /// The server, whose router refers to this player.
  private weak let core: ServerCore?
  /// The origins of the entries, which the server stands for.
  private let origins: Set<String>

  init(_ recording: TestServer.Recording, _ replay: TestServer.Replay, _ core: ServerCore) {
    entries = recording.entries
    self.replay = replay
    self.core = core
    state = Mutex(State(strikes: replay.faults.map { _ in 0 }))
    origins = Set(entries.map { RecordedTarget($0.url).origin })
  }

  func answer(_ request: TestServer.Request) -> Router.Answer {
    let fault = strike(request)
    if case .unavailable(let seconds)? = fault {
      var response = TestServer.Response.text("the server is said to be unavailable\n", status: 503)
      response.fields["Retry-After"] = seconds.map { "\($0)" }
      return .response(response)
    }
    let differences = entries.map { Comparison(request, with: $0, replay) }
    guard let index = choose(differences) else {
      let message = complaint(about: request, differences)
      return .response(.text(message + "\n", status: 404), complaint: message)
    }
    return response(entries[index], fault)
  }

  // MARK: - Choice

  private func choose(_ comparisons: [Comparison]) -> Int? {
    state.withLock { state in
      switch replay.order {
      case .recordedOrder:
        guard comparisons.indices.contains(state.next), comparisons[state.next].isEqual else { return nil }
        state.next += 1
        return state.next - 1
      case .anyOrder:
        let equal = comparisons.indices.filter { comparisons[$0].isEqual }
        let index = equal.first { !state.used.contains($0) } ?? equal.last
        if let index { state.used.insert(index) }
        return index
      }
    }
  }

  /// Returns the fault that strikes a request, and counts it.
  private func strike(_ request: TestServer.Request) -> TestServer.Fault.Kind? {
    state.withLock { state in
      for (index, fault) in replay.faults.enumerated()
      where fault.takes(request) && state.strikes[index] < fault.count ?? .max {
        state.strikes[index] += 1
        return fault.kind
      }
      return nil
    }
  }

  private func complaint(about request: TestServer.Request, _ comparisons: [Comparison]) -> String {
    let subject = "no entry answers \(request.method) \(request.target)"
    let next = state.withLock { $0.next }
    let index: Int?
    switch replay.order {
    case .recordedOrder:
      guard comparisons.indices.contains(next) else { return "\(subject): all \(entries.count) entries have answered" }
      index = next
    case .anyOrder: index = comparisons.indices.min { comparisons[$0].distance < comparisons[$1].distance }
    }
    guard let index else { return "\(subject): the recording is empty" }
    let entry = entries[index]
    let position = replay.order == .recordedOrder ? "the next one" : "the nearest one"
    return
      "\(subject); \(position) is entry \(index + 1), \(entry.method) \(RecordedTarget(entry.url).target): "
      + comparisons[index].differences.joined(separator: "; ")
  }

  // MARK: - Response

  private func response(_ entry: TestServer.Recording.Entry, _ fault: TestServer.Fault.Kind?) -> Router.Answer {
    var response = TestServer.Response(status: entry.status, fields: entry.fields, body: .bytes(entry.body))
    if let location = entry.fields["Location"] {
      let target = RecordedTarget(location)
      if origins.contains(target.origin) { response.fields["Location"] = target.target }
    }
    let body = entry.body
    let (clock, receive): (TestServer.VirtualClock?, Duration) =
      switch replay.timing {
      case .none: (nil, .zero)
      case .recorded: (nil, entry.receive)
      case .clock(let clock): (clock, entry.receive)
      }
    if receive > .zero, body.count > 1 {
      // The last byte comes at the end of the recorded time.
      response.body = .stream(count: body.count) { writer in
        try writer.write(Array(body.dropLast()))
        if let clock { try writer.wait(clock.sleep(for: receive)) } else { try writer.pause(receive) }
        try writer.write(Array(body.suffix(1)))
      }
    }
    var delay = Duration.zero
    switch replay.timing {
    case .none: break
    case .recorded: delay = entry.wait
    case .clock(let clock): _ = core?.wait(for: clock.sleep(for: entry.wait))
    }
    switch fault {
    case .cut(let count)?:
      response.body = .stream(count: body.count) { try $0.write(Array(body.prefix(count))) }
      response.closesConnection = true
    case .stall(let count)?:
      response.body = .stream(count: body.count) { writer in
        try writer.write(Array(body.prefix(count)))
        while true { try writer.pause(.seconds(3600)) }
      }
    case .reset(let count)?:
      response.body = .stream(count: body.count) { try $0.write(Array(body.prefix(count))) }
      return .script([.respond(response), .reset])
    case .entityTag(let tag)?: response.fields["ETag"] = tag
    case .unavailable?, nil: break
    }
    return .response(response, delay: delay)
  }
}

/// The parts of a recorded URL.
private struct RecordedTarget {
  /// Scheme and authority in lower case, or empty for a reference.
  let origin: String
  /// Path and query.
  let target: String

  init(_ url: String) {
    let whole = url.prefix { $0 != "#" }
    guard let mark = whole.firstRange(of: "://") else {
      (origin, target) = ("", String(whole))
      return
    }
    let rest = whole[mark.upperBound...]
    let path = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    origin = whole[..<path].lowercased()
    target = (rest[path...].hasPrefix("/") ? "" : "/") + String(rest[path...])
  }
}

/// The differences of a request from an entry.
private struct Comparison {
  private(set) var differences: [String] = []
  /// A measure of the differences: the method counts more than the query, and the path most.
  private(set) var distance = 0

  var isEqual: Bool { differences.isEmpty }

  init(_ request: TestServer.Request, with entry: TestServer.Recording.Entry, _ replay: TestServer.Replay) {
    let own = RecordedTarget(request.target.hasPrefix("/") ? request.target : request.url).target
    let (path, query) = Self.parts(own)
    let (otherPath, otherQuery) = Self.parts(RecordedTarget(entry.url).target)
    if request.method != entry.method { differ("the method is \(entry.method)", by: 1000) }
    if path != otherPath {
      let common = zip(path.utf8, otherPath.utf8).prefix { $0 == $1 }.count
      differ("the path is \(otherPath)", by: 4000 + max(0, 1000 - common))
    }
    if !Self.agree(query, otherQuery) { differ("the query is \(otherQuery ?? "missing")", by: 500) }
    for name in replay.matchedFields {
      let (values, recorded) = (request.fields.values(name), entry.requestFields.values(name))
      if values != recorded, !recorded.contains(Redaction.mark) {
        differ("\(name) is \(recorded.isEmpty ? "missing" : recorded.joined(separator: ", "))", by: 100)
      }
    }
    if replay.matchesBody, !Self.agree(request.body, entry.requestBody) {
      differ("the body of \(entry.requestBody.count) bytes is another one", by: 50)
    }
  }

  private mutating func differ(_ difference: String, by distance: Int) {
    differences.append(difference)
    self.distance += distance
  }

  private static func parts(_ target: String) -> (path: String, query: String?) {
    let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    return (parts[0], parts.count > 1 ? parts[1] : nil)
  }

  /// Whether two queries agree, except for redacted parts of the recording.
  private static func agree(_ query: String?, _ recorded: String?) -> Bool {
    guard let query, let recorded else { return query == recorded }
    return query == recorded
      || Redaction.form(query) == Redaction.form(recorded)
        && recorded.contains(Redaction.mark)
  }

  /// Whether two bodies agree, except for redacted parts of the recording: the text between two redacted parts must
  /// agree.
  private static func agree(_ body: [UInt8], _ recorded: [UInt8]) -> Bool {
    if body == recorded { return true }
    let mark = Array(Redaction.mark.utf8)
    guard recorded.firstRange(of: mark) != nil else { return false }
    var rest = body[...]
    var parts: [ArraySlice<UInt8>] = []
    var left = recorded[...]
    while let range = left.firstRange(of: mark) {
      parts.append(left[..<range.lowerBound])
      left = left[range.upperBound...]
    }
    guard let first = parts.first, rest.starts(with: first) else { return false }
    rest = rest.dropFirst(first.count)
    for part in parts.dropFirst() {
      guard let range = rest.firstRange(of: part) else { return false }
      rest = rest[range.upperBound...]
    }
    return rest.count >= left.count && rest.suffix(left.count).elementsEqual(left)
  }
}
