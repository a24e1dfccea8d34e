import LarkspurHTTP
import Testing

/// Which lane fetches which range from which mirror: facts in, actions out.
@Suite struct DownloadLanesTests {
  // MARK: - Splitting

  @Test func theFirstLaneIsSplit() {
    var stage = DownloadStage(lanes: 4, piece: 10)
    stage.check([
      (.start, "get0 a 0-"),
      (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-74 if v, get2 a 25-49 if v, get3 a 75-99 if v"),
    ])
    #expect(stage.machine.lanes.map(\.end) == [25, 75, 50, 100])
  }

  @Test func aWholeThatAcceptsRangesIsSplitToo() {
    var stage = DownloadStage(lanes: 2, piece: 10)
    stage.check([
      (.start, "get0 a 0-"), (.whole(0, 100, acceptsRanges: true), "reserve 100, get1 a 50-99 if v"),
    ])
  }

  /// Bytes without a strong validator, coded bytes, an unknown size, a mirror that does not accept ranges, and too few
  /// bytes.
  @Test func whatIsNotSplit() {
    let heads: [DownloadStage.Fact] = [
      .part(0, 0..<100, of: 100, tag: "W/\"v\""), .part(0, 0..<100, of: 100, tag: nil), .whole(0, 100),
      .part(0, 0..<100, of: 100, [Field("Content-Encoding", "gzip")]), .part(0, 0..<19, of: 19),
    ]
    for head in heads {
      var stage = DownloadStage(lanes: 4, piece: 10)
      stage.check([(.start, "get0 a 0-")])
      #expect(stage.apply(head).hasPrefix("reserve") && stage.machine.lanes.count == 1)
    }
    var unknown = DownloadStage(lanes: 4, piece: 10)
    unknown.check([(.start, "get0 a 0-"), (.part(0, 0..<50, of: nil), "")])
  }

  /// The lane stops where another one begins.
  @Test func theSplitLaneStopsAtItsNewEnd() {
    var stage = DownloadStage(lanes: 2, piece: 50)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.part(1, 50..<100, of: 100), ""), (.bytes(0, 60), "stop0, save 0..50, none"), (.saved, ""),
      (.bytes(1, 50), "save 0..100"), (.complete(1), ""), (.saved, "verify"),
    ])
  }

  /// A free lane takes a half of the rest with the longest remaining time.
  @Test func aFreeLaneSplitsTheLongestRest() {
    var stage = DownloadStage(lanes: 2, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<200, of: 200), "reserve 200, get1 a 100-199 if v"), (.reserved, ""),
      (.part(1, 100..<200, of: 200), ""),
    ])
    for offset in 0..<5 {
      let end = 20 * (offset + 1)
      if offset == 4 { break }
      stage.check([(.bytes(1, 20), "save 100..\(100 + end)"), (.saved, "")])
    }
    stage.check([
      (.bytes(1, 20), "save 100..200"), (.saved, ""), (.complete(1), "get2 a 50-99 if v"),
    ])
  }

  @Test func gapsAreFilledFirst() {
    var stage = DownloadStage(lanes: 3, piece: 10, record: DownloadStage.record([10..<20, 25..<50]))
    stage.check([
      (.start, "reserve 100, get0 a 0-9 if v"), (.reserved, ""),
      // The largest gap, then the next, then no rest is worth two lanes.
      (.part(0, 0..<10, of: 100), "get1 a 50-99 if v, get2 a 20-24 if v"),
    ])
  }

  @Test func aShortRangeLeavesARest() {
    var stage = DownloadStage(piece: 1000, record: DownloadStage.record([0..<20]))
    stage.check([
      (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (.part(0, 20..<30, of: 100), ""),
      (.bytes(0, 10), ""), (.complete(0), "save 0..30, get1 a 30-99 if v"),
    ])
  }

  // MARK: - Mirrors

  @Test func mirrorsShareTheLanes() {
    var stage = DownloadStage(lanes: 4, piece: 10, mirrors: 2)
    stage.check([
      (.start, "get0 a 0-"),
      // One lane at a mirror that has not answered, without a condition.
      (.part(0, 0..<100, of: 100), "reserve 100, get1 b 50-74, get2 a 25-49 if v, get3 a 75-99 if v"),
      (.reserved, ""), (.part(1, 50..<75, of: 100, tag: "\"w\""), ""),
      (.part(2, 25..<50, of: 100), ""), (.bytes(2, 10), ""), (.lost(2), "get4 b 35-49 if w"),
    ])
  }

  @Test func mirrorsOfAnotherSizeAreOut() {
    for head in [
      DownloadStage.Fact.part(1, 50..<90, of: 90), .whole(1, 90),
      .status(1, 416, [Field("Content-Range", "bytes */40")]),
    ] {
      var stage = DownloadStage(lanes: 2, piece: 10, mirrors: 2)
      stage.check([
        (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 b 50-99"),
        (head, "stop1, get2 a 50-99 if v"),
      ])
    }
  }

  @Test func theLastMirrorOfAnotherSizeEndsTheDownload() {
    var stage = DownloadStage(piece: 10, mirrors: 2, record: DownloadStage.record([0..<20])) {
      $0.retry.attemptsMax = 1
    }
    stage.check([
      (.start, "reserve 100, get0 a 20-99 if v"), (.reserved, ""), (.lost(0), "get1 b 20-99"),
      (.part(1, 20..<30, of: 30), "stop1, end size(expected: 100, found: 30)"),
    ])
  }

  @Test func aMirrorWithoutAStrongValidatorIsOut() {
    var stage = DownloadStage(lanes: 2, piece: 10, mirrors: 2)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 b 50-99"),
      (.part(1, 50..<100, of: 100, tag: nil), "stop1, get2 a 50-99 if v"),
    ])
  }

  /// Mirrors cannot agree on a size that is not known.
  @Test func withoutASizeThereIsOneMirror() {
    var stage = DownloadStage(piece: 1000, mirrors: 2)
    stage.check([
      (.start, "get0 a all"), (.whole(0, nil), ""), (.bytes(0, 10), ""), (.lost(0), "save 0..10, get1 b 9-"),
      (.saved, ""), (.part(1, 9..<50, of: 50), "stop1"), (.time(0.5), "get2 a 9- if v"),
    ])
  }

  // MARK: - Failures

  @Test func aLaneThatFailsBacksOffAndComesBack() {
    var stage = DownloadStage(lanes: 2, piece: 10)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.lost(1), ""), (.time(0.4), ""), (.time(0.5), "get2 a 50-99 if v"),
      // The second delay is longer.
      (.status(2, 503), "stop2"), (.bytes(0, 10), "save 0..10"), (.saved, ""), (.time(1.4), ""),
      (.time(1.5), "get3 a 50-99 if v"), (.part(3, 50..<100, of: 100), ""), (.lost(3), ""), (.time(1.9), ""),
      (.time(2), "get4 a 50-99 if v"), (.lost(4), ""), (.lost(0), ""),
    ])
  }

  @Test func failuresInARowEndTheMirror() {
    var stage = DownloadStage()
    stage.check([
      (.start, "get0 a all"), (.lost(0), ""), (.time(0.5), "get1 a all"), (.lost(1), ""), (.time(1.4), ""),
      (.time(1.5), "get2 a all"), (.lost(2), "end lane(2)"),
    ])
  }

  @Test func aByteResetsTheFailures() {
    var stage = DownloadStage()
    stage.check([(.start, "get0 a all"), (.whole(0, 100), "reserve 100"), (.reserved, "")])
    for lane in 0..<9 {
      if lane > 0 { stage.check([(.part(lane, lane..<100, of: 100), "")]) }
      stage.check([
        (.bytes(lane, 1), ""), (.lost(lane), "save 0..\(lane + 1)"), (.saved, ""),
        (.time(stage.now + 0.5), "get\(lane + 1) a \(lane + 1)-99 if v"),
      ])
    }
  }

  @Test func anErrorThatIsNotTheConnectionsEndsTheMirror() {
    var stage = DownloadStage(mirrors: 2)
    stage.check([
      (.start, "get0 a all"), (.failed(0, isOfConnection: false), "get1 b all"),
      (.failed(1, isOfConnection: false), "end lane(1)"),
    ])
  }

  /// Lanes that were under way together fail together: one failure.
  @Test func aBurstOfFailuresCountsOnce() {
    var stage = DownloadStage(lanes: 4, piece: 10)
    stage.check([
      (.start, "get0 a 0-"),
      (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-74 if v, get2 a 25-49 if v, get3 a 75-99 if v"),
      (.reserved, ""), (.lost(0), ""), (.lost(1), ""), (.lost(2), ""), (.lost(3), ""), (.time(0.5), "get4 a 0-99 if v"),
    ])
  }

  @Test(arguments: [404, 403, 500, 503, 204, 304, 100])
  func statusesThatAnotherAttemptDoesNotChange(status: Int) {
    var stage = DownloadStage(mirrors: 2) { $0.retry.statusCodes = [429] }
    stage.check([
      (.start, "get0 a all"), (.status(0, status), "stop0, get1 b all"),
      (.status(1, status), "stop1, end status(\(status))"),
    ])
  }

  @Test func retryAfterDelaysOneMirror() {
    var stage = DownloadStage(lanes: 1, mirrors: 2)
    stage.check([
      (.start, "get0 a all"), (.status(0, 503, [Field("Retry-After", "20")]), "stop0, get1 b all"),
      (.lost(1), ""), (.time(0.5), "get2 b all"), (.lost(2), ""), (.time(1.5), "get3 b all"), (.lost(3), ""),
      (.time(19), ""), (.time(20), "get4 a all"),
      (.status(4, 429, [Field("Retry-After", "61")]), "stop4, end status(429)"),
    ])
  }

  @Test(arguments: ["-1", "9999999999999999999999", "tomorrow", "", "1e400"])
  func retryAfterThatIsNoDelay(text: String) {
    var stage = DownloadStage()
    stage.check([(.start, "get0 a all")])
    #expect(stage.apply(.status(0, 503, [Field("Retry-After", text)])).hasPrefix("stop0"))
  }

  /// A mirror that serves others, and not one more: the lanes that run continue.
  @Test(arguments: [503, 403])
  func lanesAreLimitedWhereOneFails(status: Int) {
    var stage = DownloadStage(lanes: 3, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<120, of: 120), "reserve 120, get1 a 60-119 if v, get2 a 30-59 if v"),
      (.reserved, ""), (.part(1, 60..<120, of: 120), ""), (.status(2, status), "stop2"), (.time(0.4), ""),
      (.bytes(0, 20), "save 0..20"), (.saved, ""), (.bytes(0, 10), "stop0, save 0..30"), (.saved, ""),
      // One lane has ended, and another takes its place. Then one more is tried.
      (.time(0.5), "get3 a 30-59 if v"), (.part(3, 30..<60, of: 120), "get4 a 90-119 if v"),
      (.status(4, status), "stop4"), (.time(1.4), ""), (.time(1.5), "get5 a 90-119 if v"),
      (.part(5, 90..<120, of: 120), ""),
    ])
  }

  // MARK: - Slow lanes

  @Test func theRestOfASlowLaneIsFetchedTwice() {
    var stage = DownloadStage(lanes: 2, piece: 50, mirrors: 2)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 b 50-99"), (.reserved, ""),
      (.part(1, 50..<100, of: 100, tag: "\"w\""), ""), (.bytes(1, 40), ""), (.bytes(0, 5), ""), (.time(1), ""),
      (.bytes(1, 10), "save 0..5+50..100"), (.complete(1), "get2 b 5-49 if w"), (.saved, ""),
      (.part(2, 5..<50, of: 100, tag: "\"w\""), ""), (.bytes(0, 5), ""), (.bytes(2, 10), "skip 5"),
      // The first to finish wins.
      (.bytes(2, 35), "stop0, save 0..100"),
    ])
    stage.check([(.complete(2), ""), (.saved, "verify")])
  }

  @Test func aLaneBelowTheLowestRateFails() {
    var stage = DownloadStage(piece: 1000, mirrors: 2) {
      $0.lowestRate = 10
      $0.slowSeconds = 5
    }
    stage.check([
      (.start, "get0 a all"), (.time(100), ""), (.whole(0, 1000), "reserve 1000"), (.reserved, ""), (.bytes(0, 50), ""),
      (.time(105), ""), (.bytes(0, 49), ""), (.time(109), ""), (.time(110), "stop0, save 0..99, get1 b 99-999"),
    ])
    #expect(stage.machine.nextTime != nil)
  }

  @Test func aLaneThatWaitsForTheDiskIsNotSlow() {
    var stage = DownloadStage(piece: 10) { $0.lowestRate = 10 }
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100), "reserve 100"), (.bytes(0, 5), "wait 5"), (.time(50), ""),
      (.reserved, "go0"), (.time(59), ""), (.time(60), "stop0"),
    ])
  }

  /// Bytes that are there already arrive as others do.
  @Test func aLaneThatSkipsIsNotSlow() {
    var stage = DownloadStage(piece: 1000, record: DownloadStage.record([0..<60])) {
      $0.lowestRate = 10
      $0.slowSeconds = 5
    }
    stage.check([
      (.start, "reserve 100, get0 a 60-99 if v"), (.reserved, ""), (.whole(0, 100), ""), (.bytes(0, 60), "skip 60"),
      (.time(5), ""), (.time(10), "stop0"),
    ])
  }
}
