import LarkspurTransfers
import Testing

@Suite struct TransferRecordTimesTests {
  private static let now = 1_800_000_000.0
  private static let year = 365 * 86_400.0

  private func moment(_ wall: Double = now, boot: UInt64? = 1, up: Double = 1_000) -> TransferMoment {
    TransferMoment(wallSeconds: wall, bootSeconds: up, boot: boot)
  }

  /// Returns a record that was made when the wall clock was `wall`.
  private func record(_ wall: Double = now, boot: UInt64? = 1, up: Double = 1_000) -> TransferRecord {
    var record = Fixture.plain()
    record.createdSeconds = wall
    record.adjust(to: moment(wall, boot: boot, up: up))
    return record
  }

  /// Returns the age of a record at a moment, in seconds.
  private func age(_ record: TransferRecord, _ moment: TransferMoment) -> Double {
    record.seconds(at: moment) - record.createdSeconds
  }

  /// Within a boot only the time counts that has passed, wherever the wall clock is put.
  @Test(arguments: [-20 * year, -10, 0, 10, 20 * year]) func aClockThatIsSet(step: Double) throws {
    var record = record()
    record.nextAttemptSeconds = Self.now + 300
    record.suspendedSeconds = Self.now
    let later = moment(Self.now + step + 200, up: 1_200)
    #expect(age(record, later) == 200 && !record.isDue(at: later))
    #expect(record.hasOtherClock(at: later) == (abs(step) > 60))
    // Another process reads the record.
    record.adjust(to: later)
    #expect(age(record, later) == 200 && !record.hasOtherClock(at: later))
    #expect(record.createdSeconds == Self.now + step)
    #expect(record.suspendedSeconds == Self.now + step && record.nextAttemptSeconds == Self.now + step + 300)
    let last = moment(Self.now + step + 300, up: 1_300)
    #expect(record.isDue(at: last) && age(record, last) == 300)
  }

  /// In another boot the wall clock counts.
  @Test func anotherBoot() {
    var record = record()
    let later = moment(Self.now + 200, boot: 2, up: 5)
    #expect(age(record, later) == 200 && record.hasOtherClock(at: later))
    record.adjust(to: later)
    #expect(age(record, later) == 200 && record.clock?.boot == 2)
    // Without a number of the boot as well.
    record.adjust(to: moment(Self.now + 300, boot: nil))
    #expect(record.clock == nil && age(record, moment(Self.now + 400, boot: nil)) == 400)
    #expect(!record.hasOtherClock(at: moment(boot: nil)))
  }

  /// The record of a boot whose clock was ahead counts from the moment at which it is found.
  @Test func aClockThatWasAhead() {
    var record = record(Self.now + 10 * Self.year)
    record.suspendedSeconds = Self.now + 10 * Self.year
    record.nextAttemptSeconds = Self.now + 10 * Self.year
    let found = moment(boot: 2)
    record.adjust(to: found)
    #expect(age(record, found) == 0 && record.suspendedSeconds == Self.now && record.pausedSeconds == 0)
    #expect(record.nextAttemptSeconds == Self.now + TransferRecord.waitMax)
  }

  /// A clock that was not set at all, as on machines without a battery.
  @Test func aClockThatWasNotSet() {
    var record = record(100, boot: nil)
    // The record is no older at its first reading either.
    #expect(record.createdSeconds == 100)
    record.suspendedSeconds = 200
    let found = moment(boot: 2)
    record.adjust(to: found)
    #expect(age(record, found) == 0 && record.suspendedSeconds == Self.now)
  }

  /// A suspension cannot be longer than the task is old.
  @Test func suspensionsAreNoLongerThanTheTask() {
    var record = record()
    record.pausedSeconds = Self.year
    record.adjust(to: moment(Self.now + 50, up: 1_050))
    #expect(record.pausedSeconds == 50)
  }

  /// The earliest start is a time of the wall clock.
  @Test func theEarliestStart() {
    var record = record()
    record.earliestBeginSeconds = Self.now + 100
    let later = moment(Self.now + 100, up: 1_001)
    #expect(record.isDue(at: later) && !record.isDue(at: moment(Self.now, up: 9_000)))
    record.adjust(to: later)
    #expect(record.earliestBeginSeconds == Self.now + 100)
  }
}
