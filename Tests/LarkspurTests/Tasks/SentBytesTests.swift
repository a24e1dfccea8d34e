import Testing

@testable import Larkspur

@Suite struct SentBytesTests {
  @Test func aCallThatIsDroppedIsMadeUpFor() {
    let bytes = CoalescedUpdates<SentBytes>()
    #expect(bytes.add(SentBytes(from: 0, to: 5)))
    #expect(!bytes.add(SentBytes(from: 5, to: 7)))
    bytes.dropped()
    #expect(bytes.add(SentBytes(from: 7, to: 9)))
    let reported = bytes.take()
    #expect(reported?.from == 0 && reported?.to == 9)
    #expect(bytes.take() == nil)
    #expect(bytes.add(SentBytes(from: 9, to: 10)))
  }

  /// Bytes reported of the first sending do not count towards the second.
  @Test func aBodyThatBeginsAgain() {
    let bytes = CoalescedUpdates<SentBytes>()
    #expect(bytes.add(SentBytes(from: 0, to: 5)))
    for (from, to) in [(5, 7), (0, 3), (3, 7)] as [(Int64, Int64)] {
      #expect(!bytes.add(SentBytes(from: from, to: to)))
    }
    let reported = [bytes.take(), bytes.take(), bytes.take()]
    #expect(reported.map { $0?.from } == [0, 0, nil] && reported.map { $0?.to } == [7, 7, nil])
  }
}
