import LarkspurBytes
import LarkspurHTTP
import Testing

/// The judgement of responses: facts in, actions out.
@Suite struct DownloadResponsesTests {
  private typealias Fact = DownloadStage.Fact

  // MARK: - The first request and its response

  @Test func theFirstRequest() {
    var one = DownloadStage(lanes: 1)
    one.check([(.start, "get0 a all")])
    var several = DownloadStage(lanes: 2)
    several.check([(.start, "get0 a 0-")])
    var resumable = DownloadStage(lanes: 1) { $0.requiresResumable = true }
    resumable.check([(.start, "get0 a 0-")])
    var none = DownloadStage(mirrors: 0)
    none.check([(.start, "end badResponse")])
  }

  /// An empty file has no range, and a contradiction is not asked for again.
  @Test func aFirstResponseThatIsNoRangeLeadsToAPlainRequest() {
    let heads: [Fact] = [
      .status(0, 416, [Field("Content-Range", "bytes */0")]), .status(0, 416), .status(0, 206),
      .part(0, 10..<100, of: 100), .part(0, 0..<50, of: 100, tag: nil), .part(0, 0..<50, of: nil, tag: "W/\"v\""),
      .whole(0, 100, [Field("Content-Range", "bytes 0-49/100")]),
    ]
    for head in heads {
      var stage = DownloadStage(lanes: 2)
      stage.check([
        (.start, "get0 a 0-"), (head, "stop0, get1 a all"), (.whole(1, 0), ""), (.complete(1), "verify"),
      ])
      var again = DownloadStage(lanes: 2)
      again.check([(.start, "get0 a 0-"), (head, "stop0, get1 a all"), (.status(1, 416), "stop1, end badResponse")])
    }
  }

  @Test func requiresResumable() {
    let heads: [Fact] = [
      .whole(0, 100), .whole(0, 100, tag: nil, acceptsRanges: true), .part(0, 0..<100, of: 100, tag: "W/\"v\""),
      .whole(0, 100, [Field("Accept-Ranges", "none")]),
    ]
    for head in heads {
      var stage = DownloadStage(lanes: 2) { $0.requiresResumable = true }
      stage.check([(.start, "get0 a 0-"), (head, "stop0, end notResumable")])
    }
    for head in [Fact.whole(0, 100, acceptsRanges: true), .part(0, 0..<100, of: 100)] {
      var stage = DownloadStage(lanes: 1) { $0.requiresResumable = true }
      stage.check([(.start, "get0 a 0-"), (head, "reserve 100")])
    }
  }

  @Test func thePlansSize() {
    var stage = DownloadStage(mirrors: 2) { $0.expectedTotal = 100 }
    stage.check([
      (.start, "get0 a all"), (.whole(0, 99), "stop0, get1 b all"),
      (.whole(1, 101), "stop1, end size(expected: 100, found: 101)"),
    ])
  }

  // MARK: - Ranges that are ignored

  @Test func aServerThatIgnoresRangesIsReadFromTheBeginning() {
    var stage = DownloadStage(lanes: 2, piece: 20, record: DownloadStage.record([0..<20, 50..<60]))
    stage.check([
      (.start, "reserve 100, get0 a 20-49 if v"), (.reserved, ""), (.whole(0, 100), ""),
      (.bytes(0, 30), "skip 20, save 0..30+50..60"), (.bytes(0, 15), "wait 5"),
      (.saved, "go0, save 0..40+50..60"), (.bytes(0, 5), ""), (.bytes(0, 20), "skip 10, wait 5"),
    ])
    #expect(stage.machine.written.ranges == [0..<60])
  }

  @Test func otherLanesOfAServerThatIgnoresRangesStop() {
    var stage = DownloadStage(lanes: 2, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.whole(0, 100, acceptsRanges: true), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.whole(1, 100), "stop0"),
    ])
    #expect(stage.machine.lanes.map(\.position) == [0])
  }

  @Test func aMirrorThatIgnoresRangesIsNotNeeded() {
    var stage = DownloadStage(lanes: 2, piece: 20, mirrors: 2)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 b 50-99"), (.reserved, ""),
      (.whole(1, 100, tag: "\"w\""), "stop1, get2 a 50-99 if v"),
    ])
  }

  // MARK: - Another version

  @Test func anotherVersionBeginsAnew() {
    let heads: [Fact] = [
      .part(0, 20..<100, of: 100, tag: "\"w\""), .whole(0, 100, tag: "\"w\""),
      .whole(0, 90, tag: nil), .status(0, 416, [Field("Content-Range", "bytes */10")]), .status(0, 416),
      .part(0, 20..<100, of: 100, tag: "\"w\"", [Field("Content-Encoding", "gzip")]),
    ]
    for head in heads {
      var stage = DownloadStage(lanes: 2, record: DownloadStage.record([0..<20]))
      stage.check([
        (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (head, "stop0, discard"),
        (.discarded, "get1 a 0-"),
      ])
      #expect(stage.machine.written.isEmpty && stage.machine.total == nil)
    }
  }

  /// A range without a tag shows neither a change nor that it fits: the whole is asked for.
  @Test func aRangeOfAnotherSizeWithoutATag() {
    var stage = DownloadStage(lanes: 2, record: DownloadStage.record([0..<20]))
    stage.check([
      (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""),
      (.part(0, 20..<101, of: 101, tag: nil), "stop0, get1 a all"), (.whole(1, 101, tag: "\"w\""), "stop1, discard"),
    ])
  }

  @Test func theDiskFinishesBeforeTheVersionIsDiscarded() {
    var stage = DownloadStage(lanes: 2, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.bytes(0, 20), "save 0..20"), (.part(1, 50..<100, of: 100, tag: "\"w\""), "stop0, stop1"),
      (.saved, "discard"), (.discarded, "get2 a 0-"),
    ])
  }

  @Test func aResourceThatChangesTooOften() {
    var stage = DownloadStage(record: DownloadStage.record([0..<20]))
    stage.check([(.start, "reserve 100, get0 a 20-99 if v"), (.reserved, "")])
    for lane in [0, 2, 4] {
      stage.check([
        (.whole(lane, 50, tag: "\"\(lane)\""), "stop\(lane), discard"), (.discarded, "get\(lane + 1) a all"),
        (.whole(lane + 1, 100, tag: "\"v\(lane)\""), "reserve 100"), (.reserved, ""),
        (.bytes(lane + 1, 5), "save 0..5"),
        (.saved, ""), (.lost(lane + 1), ""), (.time(stage.now + 1), "get\(lane + 2) a 5-99 if v\(lane)"),
      ])
    }
    stage.check([(.whole(6, 50, tag: "\"x\""), "stop6, end changing")])
  }

  /// Other mirrors still have the version.
  @Test func aMirrorThatChangesIsOut() {
    var stage = DownloadStage(lanes: 2, mirrors: 2, record: DownloadStage.record([0..<20], urls: ["a", "b"]))
    stage.check([
      (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""),
      (.part(0, 20..<100, of: 100, tag: "\"w\""), "stop0, get1 b 20-99 if v"),
      (.part(1, 20..<100, of: 100, tag: "\"w\""), "stop1, discard"), (.discarded, "get2 a 0-"),
    ])
  }

  /// One version has one size. One of the two that were named is wrong, so the download begins anew.
  @Test func aVersionWithTwoSizes() {
    for head in [.part(0, 20..<101, of: 101), .whole(0, 99)] as [Fact] {
      var stage = DownloadStage(lanes: 2, record: DownloadStage.record([0..<20])) { $0.retry.attemptsMax = 2 }
      stage.check([
        (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (head, "stop0"), (.time(1), "get1 a 20-99 if v"),
        (.status(1, 206, [Field("ETag", "\"v\"")]), "stop1, discard"),
      ])
    }
  }

  /// A whole body without a length shows by its end that the size of the record is wrong, in either direction. A single one may
  /// have been cut by a server that closes its connections.
  @Test func aWholeWithoutALengthOfAnotherSize() {
    for (count, actions) in [(60, "skip 20"), (101, "skip 20, none, stop0, save ")] {
      var stage = DownloadStage(lanes: 1, piece: 1000, record: DownloadStage.record([0..<20])) {
        $0.retry.attemptsMax = 1
      }
      stage.check([
        (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (.whole(0, nil), ""), (.bytes(0, count), actions),
      ])
      if count < 100 { stage.check([(.complete(0), "save 0..60")]) }
      stage.check([(.saved, "discard")])
    }
  }

  /// The version is the one that is known, and the range is not the one that was asked for: a failure.
  @Test func aRangeThatDoesNotFit() {
    let heads: [Fact] = [
      .part(0, 30..<100, of: 100),
      .status(0, 203, [Field("ETag", "\"v\""), Field("Content-Length", "100")]),
      .whole(0, 100, [Field("Content-Encoding", "gzip")]),
      .part(0, 20..<100, of: 100, [Field("Content-Encoding", "gzip")]),
      .status(0, 206, [Field("ETag", "\"v\"")]),
      .status(0, 416, [Field("Content-Range", "bytes */100")]),
    ]
    for head in heads {
      var stage = DownloadStage(lanes: 2, record: DownloadStage.record([0..<20])) { $0.retry.attemptsMax = 2 }
      stage.check([
        (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (head, "stop0"), (.time(1), "get1 a 20-99 if v"),
        (.status(1, 206, [Field("ETag", "\"v\"")]), "stop1, end badResponse"),
      ])
    }
  }

  // MARK: - Bodies that are not what their heads say

  @Test func aBodyThatIsTooShort() {
    var stage = DownloadStage(piece: 1000)
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100), "reserve 100"), (.reserved, ""), (.bytes(0, 60), ""),
      (.complete(0), "save 0..60"), (.saved, ""), (.time(0.5), "get1 a 60-99 if v"), (.complete(1), ""),
      (.time(2), "get2 a 60-99 if v"), (.part(2, 60..<100, of: 100), ""), (.complete(2), "end badResponse"),
    ])
  }

  /// The bytes of a body that is too long are worth nothing.
  @Test func aBodyThatIsTooLong() {
    var stage = DownloadStage(piece: 1000, record: DownloadStage.record([0..<20])) { $0.retry.attemptsMax = 2 }
    stage.check([
      (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (.part(0, 20..<50, of: 100), ""),
      (.bytes(0, 31), "none, stop0"), (.time(0.5), "get1 a 20-99 if v"), (.part(1, 20..<50, of: 100), ""),
      (.bytes(1, 31), "none, stop1, end badResponse"),
    ])
    #expect(stage.machine.written.ranges == [0..<20])
  }

  /// Numbers at their limits lead to an error of the disk at most.
  @Test func theLargestNumbers() {
    let most = 999_999_999_999_999_999
    var stage = DownloadStage(lanes: .max, piece: .max) { $0.lowestRate = .max }
    stage.check([(.start, "get0 a 0-")])
    #expect(stage.apply(.part(0, 0..<most, of: most)).hasPrefix("reserve \(most), get1 a "))
    #expect(stage.machine.lanes.count == DownloadRules.lanesLimit)
    #expect(stage.apply(.reserveFailed(.full)).hasSuffix(", end diskFull"))
    var least = DownloadStage(lanes: .min, piece: .min) {
      ($0.lowestRate, $0.slowSeconds, $0.retry.attemptsMax) = (.min, .nan, .min)
    }
    least.check([(.start, "get0 a all"), (.whole(0, nil), ""), (.bytes(0, 1), "save 0..1")])
    var open = DownloadStage(piece: 1000, record: DownloadStage.record([0..<20])) { $0.retry.attemptsMax = 1 }
    open.check([
      (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (.whole(0, nil), ""),
      (.bytes(0, .max), "skip 20, none, stop0, save "),
    ])
    var whole = DownloadStage { $0.expectedTotal = .max }
    whole.check([
      (.start, "get0 a all"), (.whole(0, nil), "reserve \(Int.max)"), (.reserved, ""),
      (.bytes(0, .max), "save 0..10, wait \(Int.max - 10)"),
    ])
    var wrong = DownloadStage(record: DownloadStage.record([0..<Int.max], of: .max))
    wrong.check([(.start, "verify"), (.verified(.wrong([])), "reserve \(Int.max)")])
  }
}
