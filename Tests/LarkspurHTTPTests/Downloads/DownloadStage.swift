import LarkspurBytes
import LarkspurHTTP
import Testing

/// A machine, facts in few words, and actions as text.
struct DownloadStage {
  enum Fact {
    case start, pause, resume, cancel
    case head(Int, DownloadMachine.Head)
    /// Bytes of a body arrive and are written.
    case bytes(Int, Int)
    case complete(Int)
    case failed(Int, isOfConnection: Bool)
    case badDigest(Int)
    case writeFailed(Int, DownloadMachine.DiskError)
    case reserved, saved, discarded, installed
    /// The disk action that is under way fails.
    case reserveFailed(DownloadMachine.DiskError), saveFailed(DownloadMachine.DiskError)
    case discardFailed(DownloadMachine.DiskError), installFailed(DownloadMachine.DiskError)
    case verified(DownloadMachine.Verification)
    case time(Double)

    static func lost(_ lane: Int) -> Fact { .failed(lane, isOfConnection: true) }

    /// A 200 with a strong tag.
    static func whole(
      _ lane: Int, _ size: Int?, tag: String? = "\"v\"", acceptsRanges: Bool = false, _ more: FieldList = []
    ) -> Fact {
      var fields = more + (size.map { [Field("Content-Length", "\($0)")] } ?? [])
      if let tag { fields.append(Field("ETag", tag)) }
      if acceptsRanges { fields.append(Field("Accept-Ranges", "bytes")) }
      return .head(lane, .init(status: 200, fields: fields, wallSeconds: 0))
    }

    /// A 206 with a strong tag.
    static func part(
      _ lane: Int, _ range: Range<Int>, of total: Int?, tag: String? = "\"v\"", _ more: FieldList = []
    ) -> Fact {
      let text = ContentRange(bytes: range, total: total).text
      let tags = tag.map { [Field("ETag", $0)] } ?? []
      return .head(
        lane, .init(status: 206, fields: [Field("Content-Range", text)] + tags + more, wallSeconds: 0))
    }

    static func status(_ lane: Int, _ status: Int, _ fields: FieldList = []) -> Fact {
      .head(lane, .init(status: status, fields: fields, wallSeconds: 0))
    }
  }

  var machine: DownloadMachine
  var now = 0.0

  init(
    lanes: Int = 1, piece: Int = 10, mirrors: Int = 1, record: DownloadRecord? = nil,
    _ change: (inout DownloadRules) -> Void = { _ in }
  ) {
    var rules = DownloadRules()
    rules.lanesMax = lanes
    rules.pieceBytes = piece
    change(&rules)
    machine = DownloadMachine(
      rules, urls: Array(["a", "b", "c"].prefix(mirrors)), record: record, inode: 7, fraction: { 1 })
  }

  static func record(_ kept: [Range<Int>], of total: Int? = 100, urls: [String] = ["a"]) -> DownloadRecord {
    DownloadRecord(
      sources: urls.map { .init(url: $0, validator: "\"v\"") }, total: total, coding: nil,
      kept: ByteRanges(kept) ?? ByteRanges(), inode: 7)
  }

  /// Applies facts, and compares the actions that each one leads to.
  mutating func check(_ rows: [(Fact, String)], sourceLocation: SourceLocation = #_sourceLocation) {
    for (number, (fact, expected)) in rows.enumerated() {
      let found = apply(fact)
      #expect(found == expected, "row \(number): \(fact)", sourceLocation: sourceLocation)
    }
  }

  mutating func apply(_ fact: Fact) -> String {
    let actions: [DownloadMachine.Action]
    switch fact {
    case .start: actions = machine.start(now: now)
    case .pause: actions = machine.pause(now: now)
    case .resume: actions = machine.resume(now: now)
    case .cancel: actions = machine.cancel(now: now)
    case .head(let lane, let head): actions = machine.head(lane, head, now: now)
    case .bytes(let lane, let count): return receive(lane, count)
    case .complete(let lane): actions = machine.ended(lane, .complete, now: now)
    case .failed(let lane, let isOfConnection):
      actions = machine.ended(lane, .failed(isOfConnection: isOfConnection), now: now)
    case .badDigest(let lane): actions = machine.ended(lane, .badDigest, now: now)
    case .writeFailed(let lane, let error): actions = machine.writeFailed(lane, error, now: now)
    case .reserved: actions = machine.reserved(nil, now: now)
    case .reserveFailed(let error): actions = machine.reserved(error, now: now)
    case .saved: actions = machine.checkpointed(nil, now: now)
    case .saveFailed(let error): actions = machine.checkpointed(error, now: now)
    case .discarded: actions = machine.discarded(nil, now: now)
    case .discardFailed(let error): actions = machine.discarded(error, now: now)
    case .installed: actions = machine.installed(nil, now: now)
    case .installFailed(let error): actions = machine.installed(error, now: now)
    case .verified(let verification): actions = machine.verified(verification, now: now)
    case .time(let time):
      now = time
      actions = machine.passTime(now: now)
    }
    return Self.text(actions)
  }

  private mutating func receive(_ lane: Int, _ count: Int) -> String {
    var (left, words) = (count, [String]())
    while left > 0 {
      let (space, actions) = machine.space(lane, left, now: now)
      switch space {
      case .write(let skip, let offset, let size):
        if skip > 0 { words.append("skip \(skip)") }
        left -= skip + size
        words.append(Self.text(actions))
        if size > 0 { words.append(Self.text(machine.wrote(lane, offset..<(offset + size), now: now))) }
        if skip + size == 0 { return "stuck" }
      case .wait:
        words.append("wait \(left)")
        words.append(Self.text(actions))
        left = 0
      case .none:
        words.append("none")
        words.append(Self.text(actions))
        left = 0
      }
    }
    return words.filter { !$0.isEmpty }.joined(separator: ", ")
  }

  static func text(_ actions: [DownloadMachine.Action]) -> String {
    func text(_ ranges: ByteRanges) -> String {
      ranges.ranges.map { "\($0.lowerBound)..\($0.upperBound)" }.joined(separator: "+")
    }
    return actions.map { action in
      switch action {
      case .request(let lane, let request):
        let range = request.fields.firstValue(named: "Range").map { String($0.dropFirst(6)) } ?? "all"
        let condition = request.fields.firstValue(named: "If-Range").map { " if \($0.filter { $0 != "\"" })" } ?? ""
        return "get\(lane) \(["a", "b", "c"][request.source]) \(range)\(condition)"
      case .cancel(let lane): return "stop\(lane)"
      case .continue(let lane): return "go\(lane)"
      case .discard: return "discard"
      case .reserve(let size): return "reserve \(size)"
      case .checkpoint(let record): return "save \(text(record.kept))"
      case .verify: return "verify"
      case .install(let total): return "install \(total)"
      case .end(nil): return "end"
      case .end(let failure?): return "end \(failure)"
      }
    }.joined(separator: ", ")
  }
}
