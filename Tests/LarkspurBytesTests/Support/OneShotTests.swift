import LarkspurBytes
import Testing

@Suite struct OneShotTests {
  @Test func theFirstValueCounts() async {
    let shot = OneShot<Int>()
    #expect(shot.value == nil)
    shot.set(1)
    shot.set(2)
    shot.cancel()
    #expect(shot.value == 1)
    #expect(await shot.get() == 1)
  }

  @Test func aCancelledWaitHasNoValue() async {
    let shot = OneShot<Int>()
    let wait = Task { await shot.get() }
    shot.cancel()
    shot.set(1)
    #expect(await wait.value == nil)
    #expect(shot.value == nil)
  }

  /// The value may come before the wait, during it, or at the same moment.
  @Test func aValueFromAnotherTask() async {
    for number in 0..<1_000 {
      let shot = OneShot<Int>()
      async let setting: Void = Task { @concurrent in shot.set(number) }.value
      #expect(await shot.get() == number)
      await setting
    }
  }
}
