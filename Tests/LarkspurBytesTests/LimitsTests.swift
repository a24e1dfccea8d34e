import LarkspurBytes
import Testing

@Suite struct LimitsTests {
  /// The promised values. What they do is tested where they are applied.
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
