import Testing

@testable import Larkspur

@Suite struct TransferPaceTests {
  @Test func aTransferAheadOfItsRatePauses() {
    var pace = TransferPace()
    func pause(_ bytes: Int64, at seconds: Double, isYielding: Bool = true) -> Double? {
      pace.pause(bytes: bytes, at: seconds, isYielding: isYielding, bytesPerSecond: 100)
    }
    // Alone, nothing counts.
    #expect(pause(1_000_000, at: 1, isYielding: false) == nil)
    // The rate counts from the first bytes that others see.
    #expect(pause(1_000_000, at: 10) == nil)
    #expect(pause(1_000_050, at: 10) == 0.5)
    #expect(pause(1_000_050, at: 10.25) == 0.25)
    #expect(pause(1_000_050, at: 10.5) == nil)
    #expect(pause(1_000_075, at: 10.5) == 0.25)
    // A pause is short, whatever the number of bytes.
    #expect(pause(.max, at: 10.5) == TransferPace.pauseMax)
    // Time in which nothing came is not made up for.
    #expect(pause(1_000_080, at: 1_000) == nil)
    #expect(pause(1_000_180, at: 1_000) == 1)
    // Another attempt counts from 0.
    #expect(pause(5, at: 1_000) == nil)
    #expect(pause(55, at: 1_000) == 0.5)
    #expect(pause(55, at: 1_000, isYielding: false) == nil)
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
