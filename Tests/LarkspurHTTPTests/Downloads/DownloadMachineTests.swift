import LarkspurBytes
import LarkspurHTTP
import Testing

/// The steps of a download and of the disk: facts in, actions out.
@Suite struct DownloadMachineTests {
  // MARK: - From the first byte to the name

  @Test func oneLane() {
    var stage = DownloadStage(piece: 1000)
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100), "reserve 100"), (.bytes(0, 10), "wait 10"), (.reserved, "go0"),
      (.bytes(0, 60), ""), (.bytes(0, 40), ""), (.complete(0), "save 0..100"), (.saved, "verify"),
      (.verified(.fits), "install 100"), (.installed, "end"),
    ])
    #expect(stage.machine.phase == .ended && stage.machine.written.count == 100 && stage.machine.nextTime == nil)
  }

  @Test func anEmptyFile() {
    var stage = DownloadStage()
    stage.check([
      (.start, "get0 a all"), (.whole(0, 0), ""), (.complete(0), "verify"), (.verified(.fits), "install 0"),
      (.installed, "end"),
    ])
  }

  @Test func withoutASizeTheEndOfTheBodyIsTheEnd() {
    var stage = DownloadStage(piece: 1000)
    stage.check([
      (.start, "get0 a all"), (.whole(0, nil), ""), (.bytes(0, 60), ""), (.complete(0), "save 0..60"),
      (.saved, "verify"), (.verified(.fits), "install 60"), (.installed, "end"),
    ])
  }

  @Test func thePlansSizeStandsInForAMissingOne() {
    var stage = DownloadStage(piece: 1000) { $0.expectedTotal = 60 }
    stage.check([
      (.start, "get0 a all"), (.whole(0, nil), "reserve 60"), (.reserved, ""), (.bytes(0, 50), ""),
      (.complete(0), "discard"), (.discarded, "end size(expected: 60, found: 50)"),
    ])
  }

  /// A size that only the plan has shows nothing of a mirror, and is in no record.
  @Test func thePlansSizeMakesNoMirrorsAgree() {
    var stage = DownloadStage(piece: 10, mirrors: 2) { $0.expectedTotal = 60 }
    stage.check([
      (.start, "get0 a all"), (.whole(0, nil), "reserve 60"), (.reserved, ""), (.bytes(0, 5), "save 0..5"),
      (.lost(0), "get1 b 5-59"), (.part(1, 5..<60, of: 60, tag: "\"w\""), "stop1"), (.saved, ""),
    ])
  }

  /// A server has once stated a wrong size under the validator, and now states the right one.
  @Test func aRecordOfAWrongSizeDoesNotStay() {
    var stage = DownloadStage(record: DownloadStage.record([0..<20], of: 21)) { $0.retry.attemptsMax = 1 }
    stage.check([
      (.start, "reserve 21, get0 a 20-20 if v"), (.reserved, ""),
      (.status(0, 416, [Field("Content-Range", "bytes */20"), Field("ETag", "\"v\"")]), "stop0, discard"),
      (.discarded, ""), (.time(1), "get1 a all"), (.whole(1, 20), "reserve 20"),
    ])
  }

  /// A tag without quotes counts for a range only if the range repeats it. Without it the range shows no change.
  @Test func aRangeThatDoesNotRepeatABareTag() {
    var stage = DownloadStage(lanes: 2, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100, tag: "v"), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.part(1, 50..<100, of: 100, tag: nil), "stop1"), (.lost(0), ""), (.time(1), "get2 a all"),
    ])
  }

  /// Facts before the start, after the end, of lanes that have ended and of disk actions that are not under way.
  @Test func factsThatComeTooLateAreIgnored() {
    var stage = DownloadStage(piece: 1000)
    let facts: [DownloadStage.Fact] = [
      .whole(0, 100), .bytes(0, 1), .complete(0), .lost(0), .badDigest(0), .writeFailed(0, .full), .reserved, .saved,
      .discarded, .installed, .verified(.fits), .resume, .saveFailed(.full), .reserveFailed(.full),
      .discardFailed(.full), .installFailed(.full), .time(1),
    ]
    for fact in facts {
      let found = stage.apply(fact)
      #expect(found == "" || found == "none", "\(fact)")
    }
    stage.check([(.start, "get0 a all"), (.start, ""), (.cancel, "stop0, end cancelled")])
    for fact in facts + [.start, .pause, .cancel] {
      let found = stage.apply(fact)
      #expect(found == "" || found == "none", "\(fact)")
    }
  }

  // MARK: - Checkpoints

  /// A lane waits once it has a piece that is not kept.
  @Test func aLaneWaitsForTheCheckpoint() {
    var stage = DownloadStage(lanes: 2, piece: 10)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.bytes(0, 15), "save 0..10, wait 5"), (.saved, "go0"), (.bytes(0, 5), ""),
      (.part(1, 50..<100, of: 100), ""), (.bytes(1, 5), "save 0..15+50..55"),
      // What is written meanwhile is not kept.
      (.bytes(1, 5), ""), (.bytes(1, 5), "wait 5"), (.saved, "go1"), (.bytes(1, 5), "save 0..15+50..65"),
    ])
    #expect(stage.machine.keptCount == 20)
  }

  @Test func withoutAStrongValidatorNothingIsKept() {
    var stage = DownloadStage(lanes: 4, piece: 10)
    stage.check([
      (.start, "get0 a 0-"), (.whole(0, 100, tag: "W/\"v\"", acceptsRanges: true), "reserve 100"), (.reserved, ""),
      (.bytes(0, 60), ""), (.bytes(0, 40), ""), (.complete(0), "verify"), (.verified(.fits), "install 100"),
      (.installed, "end"),
    ])
    #expect(stage.machine.keptCount == 0)
  }

  @Test func withoutAStrongValidatorAFailureBeginsAnew() {
    var stage = DownloadStage(piece: 10)
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100, tag: nil), "reserve 100"), (.reserved, ""), (.bytes(0, 60), ""),
      (.lost(0), "discard"), (.discarded, ""), (.time(0.5), "get1 a all"), (.whole(1, 90, tag: nil), "reserve 90"),
      (.reserved, ""), (.bytes(1, 60), ""),
      // A byte is no progress.
      (.lost(1), "discard"), (.discarded, ""), (.time(1.5), "get2 a all"), (.whole(2, 90, tag: nil), "reserve 90"),
      (.reserved, ""), (.bytes(2, 60), ""), (.lost(2), "discard"), (.discarded, "end lane(2)"),
    ])
  }

  // MARK: - Pause and cancel

  @Test func pauseKeepsWhatIsWritten() {
    var stage = DownloadStage(piece: 1000)
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100), "reserve 100"), (.reserved, ""), (.bytes(0, 60), ""),
      (.pause, "stop0, save 0..60"), (.pause, ""), (.saved, ""), (.bytes(0, 10), "none"), (.time(100), ""),
      (.resume, "get1 a 60-99 if v"),
    ])
    #expect(stage.machine.isResumable == true && stage.machine.total == 100)
  }

  @Test func pauseWithoutAStrongValidatorBeginsAnew() {
    var stage = DownloadStage(piece: 1000)
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100, tag: nil), "reserve 100"), (.reserved, ""), (.bytes(0, 60), ""),
      (.pause, "stop0, discard"), (.discarded, ""), (.resume, "get1 a all"),
    ])
  }

  @Test func pauseWhileTheFileIsVerified() {
    var stage = DownloadStage(record: DownloadStage.record([0..<100]))
    stage.check([
      (.start, "verify"), (.pause, ""), (.verified(.fits), ""), (.resume, "verify"), (.verified(.fits), "install 100"),
      (.pause, ""), (.installed, "end"),
    ])
  }

  @Test func cancelKeepsWhatIsWritten() {
    var stage = DownloadStage(piece: 1000)
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100), "reserve 100"), (.reserved, ""), (.bytes(0, 60), ""),
      (.cancel, "stop0, save 0..60"), (.cancel, ""), (.saved, "end cancelled"),
    ])
  }

  @Test func cancelWithoutAStrongValidatorLeavesNothing() {
    var stage = DownloadStage()
    stage.check([
      (.start, "get0 a all"), (.whole(0, 100, tag: nil), "reserve 100"), (.reserved, ""), (.bytes(0, 60), ""),
      (.cancel, "stop0, discard"), (.discarded, "end cancelled"),
    ])
  }

  @Test func cancelAwaitsTheDisk() {
    var verifying = DownloadStage(record: DownloadStage.record([0..<100]))
    verifying.check([(.start, "verify"), (.cancel, ""), (.verified(.wrong([])), "end cancelled")])
    var failing = DownloadStage(record: DownloadStage.record([0..<100]))
    failing.check([(.start, "verify"), (.cancel, ""), (.verified(.failed(.full)), "end cancelled")])
    var reserving = DownloadStage(record: DownloadStage.record([0..<10]))
    reserving.check([
      (.start, "reserve 100, get0 a 10-99 if v"), (.cancel, "stop0"), (.reserveFailed(.full), "end cancelled"),
    ])
    var installing = DownloadStage(record: DownloadStage.record([0..<100]))
    installing.check([(.start, "verify"), (.verified(.fits), "install 100"), (.cancel, ""), (.installed, "end")])
    var discarding = DownloadStage(record: DownloadStage.record([0..<10], urls: ["x"]))
    discarding.check([(.start, "discard"), (.cancel, ""), (.discarded, "end cancelled")])
  }

  // MARK: - Errors of the disk

  @Test func aFullDiskKeepsWhatIsWritten() {
    var stage = DownloadStage(lanes: 2, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.bytes(0, 10), ""), (.writeFailed(0, .full), "stop0, stop1, save 0..10"), (.saved, "end diskFull"),
    ])
  }

  /// After a sync that failed no record is written: the kernel may have dropped the bytes.
  @Test func afterACheckpointThatFailsTheEarlierRecordStands() {
    var stage = DownloadStage(lanes: 2, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.bytes(0, 20), "save 0..20"), (.saveFailed(.failed(5)), "stop0, stop1, end disk(5)"),
    ])
    var full = DownloadStage(lanes: 1, piece: 20)
    full.check([
      (.start, "get0 a all"), (.whole(0, 100), "reserve 100"), (.reserved, ""), (.bytes(0, 5), ""),
      (.writeFailed(0, .full), "stop0, save 0..5"), (.saveFailed(.failed(5)), "end diskFull"),
    ])
  }

  @Test func otherDiskActionsThatFail() {
    var reserve = DownloadStage(lanes: 2)
    reserve.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"),
      (.reserveFailed(.full), "stop0, stop1, end diskFull"),
    ])
    var discard = DownloadStage(record: DownloadStage.record([0..<10], urls: ["x"]))
    discard.check([(.start, "discard"), (.discardFailed(.failed(5)), "end disk(5)")])
    var verify = DownloadStage(record: DownloadStage.record([0..<100]))
    verify.check([(.start, "verify"), (.verified(.failed(.failed(5))), "end disk(5)")])
    var install = DownloadStage(record: DownloadStage.record([0..<100]))
    install.check([(.start, "verify"), (.verified(.fits), "install 100"), (.installFailed(.full), "end diskFull")])
  }

  // MARK: - Records

  @Test func aRecordContinues() {
    var stage = DownloadStage(lanes: 4, piece: 10, record: DownloadStage.record([0..<20, 60..<70]))
    stage.check([
      // One lane, up to the next kept range, until the mirror has shown that it accepts ranges.
      (.start, "reserve 100, get0 a 20-59 if v"), (.reserved, ""),
      (.part(0, 20..<60, of: 100), "get1 a 70-84 if v, get2 a 40-59 if v, get3 a 85-99 if v"),
      (.bytes(0, 10), ""), (.bytes(0, 1), "wait 1, save 0..30+60..70"),
    ])
  }

  @Test func aRecordWithoutASizeAsksForItsLastByteAgain() {
    let record = DownloadStage.record([0..<60], of: nil)
    // More bytes follow.
    var more = DownloadStage(piece: 1000, record: record)
    more.check([
      (.start, "get0 a 59- if v"), (.part(0, 59..<100, of: 100), "reserve 100"), (.reserved, ""),
      (.bytes(0, 41), "skip 1"), (.complete(0), "save 0..100"),
    ])
    // All bytes are there.
    for total in [60, nil] {
      var none = DownloadStage(record: record)
      none.check([(.start, "get0 a 59- if v"), (.part(0, 59..<60, of: total), "stop0, verify")])
    }
    // No byte follows the range that the server cut off.
    var cut = DownloadStage(piece: 1000, record: record)
    cut.check([
      (.start, "get0 a 59- if v"), (.part(0, 59..<80, of: nil), ""), (.bytes(0, 21), "skip 1"),
      (.complete(0), "save 0..80, get1 a 79- if v"), (.saved, ""), (.part(1, 79..<80, of: nil), "stop1, verify"),
    ])
    // The server ignores the range, and does not state the size.
    var ignored = DownloadStage(piece: 1000, record: record)
    ignored.check([
      (.start, "get0 a 59- if v"), (.whole(0, nil), ""), (.bytes(0, 70), "skip 60"), (.complete(0), "save 0..70"),
      (.saved, "verify"),
    ])
    // A version does not become shorter.
    var short = DownloadStage(record: record)
    short.check([
      (.start, "get0 a 59- if v"), (.whole(0, nil), ""), (.bytes(0, 50), "skip 50"), (.complete(0), ""),
      (.time(0.5), "get1 a all"),
    ])
  }

  @Test(arguments: [
    // Another URL, a size that the plan does not have, bytes after the end, and bytes whose end is not known.
    DownloadStage.record([0..<20], urls: ["x"]), DownloadStage.record([0..<20], of: 99),
    DownloadStage.record([0..<120]), DownloadStage.record([0..<20], of: -1),
    DownloadStage.record([]), DownloadStage.record([0..<20, 30..<40], of: nil),
  ])
  func aRecordThatDoesNotFitIsDiscarded(record: DownloadRecord) {
    var stage = DownloadStage(lanes: 2, record: record) { $0.expectedTotal = record.kept.isEmpty ? 90 : nil }
    if record.total == 99 { stage = DownloadStage(lanes: 2, record: record) { $0.expectedTotal = 100 } }
    stage.check([(.start, "discard"), (.discarded, "get0 a 0-")])
  }

  /// A mirror that the record does not name takes part once it has shown the size.
  @Test func aRecordOfOneOfTwoMirrors() {
    var stage = DownloadStage(lanes: 2, mirrors: 2, record: DownloadStage.record([0..<20], urls: ["b"]))
    stage.check([
      (.start, "reserve 100, get0 a 20-99"), (.reserved, ""),
      (.part(0, 20..<100, of: 100, tag: "\"w\""), "get1 b 60-99 if v"),
    ])
  }

  // MARK: - Wrong hashes

  @Test func wrongPiecesAreFetchedAgain() {
    var stage = DownloadStage(lanes: 1, piece: 1000, record: DownloadStage.record([0..<100]))
    stage.check([
      (.start, "verify"),
      // The record no longer names the bytes before one of them is fetched.
      (.verified(.wrong([10..<20, 90..<200])), "reserve 100"), (.reserved, "save 0..10+20..90"),
      (.saved, "get0 a 10-19 if v"), (.part(0, 10..<20, of: 100), ""), (.bytes(0, 10), ""),
      (.complete(0), "save 0..90, get1 a 90-99 if v"), (.saved, ""), (.part(1, 90..<100, of: 100), ""),
      (.bytes(1, 10), ""), (.complete(1), "save 0..100"), (.saved, "verify"),
      (.verified(.wrong([10..<20])), "save 0..10+20..100"), (.saved, "get2 a 10-19 if v"), (.lost(2), ""),
    ])
  }

  @Test func wrongPiecesAreFetchedAgainThreeTimes() {
    var stage = DownloadStage(piece: 1000, record: DownloadStage.record([0..<100]))
    stage.check([(.start, "verify"), (.verified(.wrong([0..<1])), "reserve 100"), (.reserved, "save 1..100")])
    for lane in 0..<3 {
      stage.check([
        (.saved, "get\(lane) a 0-0 if v"), (.part(lane, 0..<1, of: 100), ""), (.bytes(lane, 1), ""),
        (.complete(lane), "save 0..100"), (.saved, "verify"),
        (.verified(.wrong([0..<1])), lane < 2 ? "save 1..100" : "end checksum"),
      ])
    }
  }

  @Test func withAHashOfTheWholeTheHalvesAreFetchedAgain() {
    var stage = DownloadStage(piece: 1000, record: DownloadStage.record([0..<5], of: 5))
    stage.check([
      (.start, "verify"), (.verified(.wrong([])), "reserve 5"), (.reserved, "save 3..5"), (.saved, "get0 a 0-2 if v"),
      (.part(0, 0..<3, of: 5), ""), (.bytes(0, 3), ""), (.complete(0), "save 0..5"), (.saved, "verify"),
      (.verified(.wrong([])), "save 0..3"), (.saved, "get1 a 3-4 if v"), (.part(1, 3..<5, of: 5), ""),
      (.bytes(1, 2), ""), (.complete(1), "save 0..5"), (.saved, "verify"), (.verified(.wrong([])), "end checksum"),
    ])
  }

  @Test func withoutAStrongValidatorTheWholeIsFetchedAgainOnce() {
    var stage = DownloadStage()
    stage.check([
      (.start, "get0 a all"), (.whole(0, 5, tag: nil), "reserve 5"), (.reserved, ""), (.bytes(0, 5), ""),
      (.complete(0), "verify"), (.verified(.wrong([])), "discard"), (.discarded, "get1 a all"),
      (.whole(1, 5, tag: nil), "reserve 5"), (.reserved, ""), (.bytes(1, 5), ""), (.complete(1), "verify"),
      (.verified(.wrong([])), "discard"), (.discarded, "end checksum"),
    ])
  }

  @Test func wrongHashesOfNothing() {
    for ranges in [[], [5..<9]] as [[Range<Int>]] {
      var stage = DownloadStage()
      stage.check([
        (.start, "get0 a all"), (.whole(0, 0), ""), (.complete(0), "verify"),
        (.verified(.wrong(ranges)), "end checksum"),
      ])
    }
  }

  /// Wrong bytes come from another mirror the second time.
  @Test func afterWrongHashesTheMirrorsTakeTurns() {
    var stage = DownloadStage(mirrors: 2, record: DownloadStage.record([0..<100], urls: ["a", "b"]))
    stage.check([
      (.start, "verify"), (.verified(.wrong([0..<9])), "reserve 100"), (.reserved, "save 9..100"),
      (.saved, "get0 b 0-8 if v"),
    ])
  }

  @Test func aWrongDigestOfABody() {
    var stage = DownloadStage(lanes: 2, piece: 20)
    stage.check([
      (.start, "get0 a 0-"), (.part(0, 0..<100, of: 100), "reserve 100, get1 a 50-99 if v"), (.reserved, ""),
      (.part(1, 50..<100, of: 100), ""), (.bytes(1, 20), "save 50..70"), (.saved, ""), (.bytes(1, 20), "save 50..90"),
      (.saved, ""), (.bytes(1, 10), ""),
      // The record no longer names the bytes, before they are fetched again.
      (.badDigest(1), "save "), (.saved, ""), (.time(0.5), "get2 a 50-99 if v"), (.bytes(0, 20), "save 0..20"),
    ])
    #expect(stage.machine.written.ranges == [0..<20])
  }
}
