import LarkspurBytes
import LarkspurIO
import Testing

@testable import LarkspurTransport

/// Where a loop's thread sleeps while guests look. (What these tests need not wait for, they find at once.)
@Suite struct BellTests {
  private let bell = Bell()

  private func now() -> Deadline { LinuxKernel.shared.now() }

  /// Whoever wants it while the loop sleeps elsewhere gets it once the loop has got something there.
  @Test(arguments: [(false, false, false), (false, true, false), (true, false, false), (true, true, true)])
  func itIsChosen(isWanted: Bool, mayUse: Bool, isUsed: Bool) {
    if isWanted { #expect(!bell.isForGuests()) }
    bell.choose(mayUse: mayUse)
    #expect(bell.isInUse == isUsed)
    #expect(bell.isForGuests() == isUsed)
  }

  @Test func whoeverBringsSomethingElseHasItLeft() {
    #expect(!bell.isToBeLeft())
    _ = bell.isForGuests()
    bell.choose(mayUse: true)
    #expect(bell.isToBeLeft())
    // And it is wanted no more.
    bell.choose(mayUse: true)
    #expect(!bell.isInUse)
  }

  @Test func aRingEndsTheSleep() {
    begin()
    bell.ring()
    var looks = 0
    bell.wait(until: .never, now: now) {
      looks += 1
      return true
    }
    #expect(looks == 0)
    #expect(!bell.isInUse && !bell.hasMissedSomething())
  }

  /// However often it has rung: the loop takes one turn for all of it.
  @Test(.timeLimit(.minutes(1))) func ringsDoNotAddUp() {
    begin()
    for _ in 0..<3 { bell.ring() }
    bell.wait(until: .never, now: now) { false }
    begin()
    var looks = 0
    bell.wait(until: .never, now: now) {
      looks += 1
      return false
    }
    #expect(looks == 1)
  }

  @Test func aDeadlineEndsIt() {
    begin()
    bell.wait(until: now(), now: now) {
      Issue.record("The deadline comes first.")
      return true
    }
    #expect(!bell.isInUse && !bell.hasMissedSomething())
  }

  /// What no guest has taken is found, and told once.
  @Test(.timeLimit(.minutes(1))) func whatNobodyTakesIsFound() {
    begin()
    bell.wait(until: .never, now: now) {
      _ = bell.isForGuests()
      return true
    }
    #expect(!bell.isInUse && bell.hasMissedSomething() && !bell.hasMissedSomething())
    // It goes back to the poller, whoever has wanted it here.
    bell.choose(mayUse: true)
    #expect(!bell.isInUse)
  }

  /// So long as guests look the loop sleeps on, and looks now and then itself.
  @Test(.timeLimit(.minutes(1))) func itLastsAsLongAsGuestsLook() {
    begin()
    var looks = 0
    bell.wait(until: .never, now: now) {
      looks += 1
      if looks < 3 { _ = bell.isForGuests() }
      return false
    }
    #expect(looks == 3)
    #expect(!bell.isInUse && !bell.hasMissedSomething())
  }

  /// A guest that is about to look takes what is there: the loop leaves it alone.
  @Test(.timeLimit(.minutes(1))) func itDoesNotLookBesideAGuest() {
    begin()
    bell.whileLooking {
      bell.wait(until: .never, now: now) {
        Issue.record("A guest looks.")
        return true
      }
    }
    #expect(!bell.hasMissedSomething())
  }

  private func begin() {
    _ = bell.isForGuests()
    bell.choose(mayUse: true)
    #expect(bell.isInUse)
  }
}
