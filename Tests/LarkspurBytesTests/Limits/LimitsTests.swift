import LarkspurBytes
import Testing

@Suite struct LimitsTests {
  /// The documented defaults. The tests of each limit are beside the code that enforces the limit.
  @Test func defaults() {
    let limits = Limits()
    #expect(limits.headBytesMax == 300 * 1024)
    #expect(limits.fieldLineBytesMax == 64 * 1024)
    #expect(limits.fieldsMax == 1000)
    #expect(limits.interimResponsesMax == 32)
    #expect(limits.chunkExtensionBytesMax == 16 * 1024)
    #expect(limits.trailerBytesMax == 16 * 1024)
  }
}
