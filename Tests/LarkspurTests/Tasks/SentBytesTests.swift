import Testing

@testable import Larkspur

@Suite struct SentBytesTests {
  @Test func aCallThatIsDroppedIsMadeUpFor() {
    let bytes = SentBytes()
    #expect(bytes.add(from: 0, to: 5))
    #expect(!bytes.add(from: 5, to: 7))
    bytes.callIsLost()
    #expect(bytes.add(from: 7, to: 9))
    let told = bytes.take()
    #expect(told?.from == 0 && told?.to == 9)
    #expect(bytes.take() == nil)
    #expect(bytes.add(from: 9, to: 10))
  }
}
