import LarkspurBytes
import Testing

@testable import Larkspur

@Suite struct TransferPaceTests {
  @Test func aTransferAheadOfItsRatePauses() {
    var pace = TransferPace()
    func pause(_ bytes: Int64, at seconds: Double, isYielding: Bool = true) -> Duration? {
      let now = Deadline(nanoseconds: 0).advanced(by: .seconds(seconds))
      return pace.pause(bytes: bytes, at: now, isYielding: isYielding, bytesPerSecond: 100)
    }
    // Alone, nothing counts.
    #expect(pause(1_000_000, at: 1, isYielding: false) == nil)
    // The rate counts from the first bytes that others see, less the burst of one byte.
    #expect(pause(1_000_000, at: 10) == nil)
    #expect(pause(1_000_051, at: 10) == .milliseconds(500))
    #expect(pause(1_000_051, at: 10.25) == .milliseconds(250))
    #expect(pause(1_000_051, at: 10.5) == nil)
    #expect(pause(1_000_076, at: 10.5) == .milliseconds(250))
    // A pause is short, whatever the number of bytes.
    #expect(pause(.max, at: 10.5) == TransferPace.pauseMax)
    #expect(pause(1, at: 11) == nil)
    // Time in which nothing came is not made up for.
    #expect(pause(2, at: 1_000) == nil)
    #expect(pause(102, at: 1_000) == .seconds(1))
    // Another attempt counts from 0.
    #expect(pause(5, at: 1_000) == .none)
    #expect(pause(56, at: 1_000) == .milliseconds(500))
    #expect(pause(56, at: 1_000, isYielding: false) == nil)
    #expect(pause(1_000, at: 1_000) == nil)
  }

  @Test func othersCountWhileTheyLast() {
    let traffic = TransferTraffic()
    #expect(!traffic.isBusy)
    var loads = [traffic.add(), traffic.add()]
    #expect(traffic.isBusy)
    loads.removeLast()
    #expect(traffic.isBusy)
    loads.removeLast()
    #expect(!traffic.isBusy)
  }
}
