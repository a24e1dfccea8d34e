import Testing

@testable import LarkspurTransport

@Suite struct WaitChoiceTests {
  private var choice = WaitChoice()
  private var time: UInt64 = 0

  /// Makes `count` waits, each of which takes as much as it does, and returns how many of them were looks.
  private mutating func looks(in count: Int, asleep: UInt64, look: UInt64) -> Int {
    var looks = 0
    for _ in 0..<count {
      let isLook = choice.looks(processorTime: { [time] in time })
      looks += isLook ? 1 : 0
      time += isLook ? look : asleep
      if isLook { choice.found() }
    }
    return looks
  }

  @Test mutating func itLooksWhereThatIsCheaper() {
    #expect(looks(in: WaitChoice.restMin + WaitChoice.measuredCount, asleep: 30, look: 25) == 0)
    let looked = WaitChoice.measuredCount + WaitChoice.lookingCount
    #expect(looks(in: looked, asleep: 30, look: 25) == looked)
    // Both are measured again then, and no rest comes in between.
    #expect(looks(in: WaitChoice.measuredCount, asleep: 30, look: 25) == 0)
    #expect(looks(in: looked, asleep: 30, look: 25) == looked)
  }

  @Test(arguments: [(UInt64(24), UInt64(24), true), (24, 25, false)])
  mutating func itSleepsWhereThatIsCheaper(asleep: UInt64, look: UInt64, isWorthIt: Bool) {
    let before = WaitChoice.restMin + 2 * WaitChoice.measuredCount
    #expect(looks(in: before, asleep: asleep, look: look) == WaitChoice.measuredCount)
    #expect(looks(in: 1, asleep: asleep, look: look) == (isWorthIt ? 1 : 0))
  }

  /// Both are measured again when looks have become dearer, long before their time is over: the server's pace has changed.
  @Test(arguments: [WaitChoice.watchedCount, 20 * WaitChoice.watchedCount])
  mutating func looksBecomeDearer(after count: Int) {
    _ = looks(in: WaitChoice.restMin + 2 * WaitChoice.measuredCount, asleep: 30, look: 25)
    #expect(looks(in: count, asleep: 30, look: 25) == count)
    #expect(looks(in: WaitChoice.watchedCount, asleep: 30, look: 31) == WaitChoice.watchedCount)
    #expect(looks(in: WaitChoice.measuredCount, asleep: 32, look: 31) == 0)
    let looked = WaitChoice.measuredCount + WaitChoice.watchedCount
    #expect(looks(in: looked, asleep: 32, look: 31) == looked)
  }

  /// Where it is dearer it is tried ever more seldom.
  @Test mutating func restsGrow() {
    #expect(looks(in: WaitChoice.restMin, asleep: 1, look: 9) == 0)
    var rest = WaitChoice.restMin
    for _ in 0..<10 {
      #expect(looks(in: 2 * WaitChoice.measuredCount, asleep: 8, look: 9) == WaitChoice.measuredCount)
      rest = min(2 * rest, WaitChoice.restMax)
      #expect(looks(in: rest, asleep: 8, look: 9) == 0)
    }
    #expect(rest == WaitChoice.restMax)
    // And with each success less seldom.
    let looked = WaitChoice.measuredCount + WaitChoice.lookingCount
    #expect(looks(in: WaitChoice.measuredCount + looked, asleep: 9, look: 1) == looked)
    choice.lookedInVain()
    choice.lookedInVain()
    #expect(looks(in: WaitChoice.restMax, asleep: 9, look: 1) == 0)
    #expect(looks(in: WaitChoice.measuredCount + 1, asleep: 9, look: 1) == 1)
  }

  /// What is far dearer is seen at a glance.
  @Test(arguments: [(UInt64(15), false), (16, true)])
  mutating func looksThatAreFarDearer(look: UInt64, isFar: Bool) {
    let count = isFar ? WaitChoice.glanceCount : WaitChoice.measuredCount
    #expect(looks(in: WaitChoice.restMin + WaitChoice.measuredCount, asleep: 10, look: look) == 0)
    #expect(looks(in: count, asleep: 10, look: look) == count)
    #expect(looks(in: 2 * WaitChoice.restMin, asleep: 10, look: look) == 0)
    #expect(looks(in: WaitChoice.measuredCount, asleep: 10, look: look) == 0)
    #expect(looks(in: count, asleep: 10, look: look) == count)
  }

  /// One look in vain ends the looking, whatever the phase, unless enough have not been.
  @Test(arguments: [(0, false), (31, false), (32, false), (63, false), (64, true), (531, true)])
  mutating func aLookInVain(after count: Int, isPaidFor: Bool) {
    _ = looks(in: WaitChoice.restMin + WaitChoice.measuredCount, asleep: 30, look: 25)
    #expect(looks(in: count, asleep: 30, look: 25) == count)
    let isLook = choice.looks(processorTime: { [time] in time })
    #expect(isLook)
    choice.lookedInVain()
    #expect(looks(in: 2 * WaitChoice.restMin, asleep: 30, look: 25) == (isPaidFor ? 2 * WaitChoice.restMin : 0))
  }

  /// Two in a row are never paid for.
  @Test mutating func looksInVain() {
    _ = looks(in: WaitChoice.restMin + WaitChoice.measuredCount, asleep: 30, look: 25)
    #expect(looks(in: 500, asleep: 30, look: 25) == 500)
    choice.lookedInVain()
    #expect(looks(in: 1, asleep: 30, look: 25) == 1)
    choice.lookedInVain()
    #expect(looks(in: 2 * WaitChoice.restMin, asleep: 30, look: 25) == 0)
  }

  /// What a wait costs after which another thread goes on is not known: with too many of those nothing is.
  @Test(arguments: [(Int.max, true), (2, true), (1, false)])
  mutating func threadsChange(afterWaits count: Int, isKnown: Bool) {
    var isLook = false
    for index in 0...(WaitChoice.restMin + 2 * WaitChoice.measuredCount) {
      isLook = choice.looks(on: UInt64(index / count), processorTime: { [time] in time })
      time += isLook ? 25 : 30
    }
    #expect(isLook == isKnown)
  }

  @Test mutating func itLooksInTestsWhateverHappens() {
    choice = .always
    for _ in 0..<100 { choice.lookedInVain() }
    #expect(looks(in: 10_000, asleep: 1, look: 1_000) == 10_000)
  }

  /// Another thread has got the identity of one that has ended: that wait is left out.
  @Test(arguments: [1, WaitChoice.measuredCount, WaitChoice.measuredCount + 1])
  mutating func aClockThatBeginsAnew(after count: Int) {
    _ = looks(in: WaitChoice.restMin + count, asleep: 30, look: 25)
    time = 0
    let measured = 2 * WaitChoice.measuredCount - count
    #expect(looks(in: measured, asleep: 30, look: 25) == min(measured, WaitChoice.measuredCount))
    #expect(looks(in: 100, asleep: 30, look: 25) == 100)
  }

  /// Where it mostly cannot be looked nothing is known of looks, and they are not what is chosen.
  @Test(arguments: [(16, true), (17, false)]) mutating func itCouldNotLook(count: Int, isKnown: Bool) {
    _ = looks(in: WaitChoice.restMin + WaitChoice.measuredCount, asleep: 30, look: 25)
    for index in 0..<WaitChoice.measuredCount {
      #expect(looks(in: 1, asleep: 30, look: 25) == 1)
      if index < count { choice.couldNotLook() }
    }
    #expect(looks(in: 1, asleep: 30, look: 25) == (isKnown ? 1 : 0))
  }

  /// Only the looking is given up: a rest is not made longer.
  @Test mutating func aLookInVainThatIsToldOfLate() {
    _ = looks(in: WaitChoice.restMin + WaitChoice.measuredCount + 1, asleep: 30, look: 25)
    choice.lookedInVain()
    choice.lookedInVain()
    let quiet = 2 * WaitChoice.restMin + WaitChoice.measuredCount
    #expect(looks(in: quiet, asleep: 30, look: 25) == 0)
    #expect(looks(in: 1, asleep: 30, look: 25) == 1)
  }
}
