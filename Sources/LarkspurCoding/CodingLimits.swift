/// What a peer's content coding may make us do. Every limit is inclusive: the value itself passes, one more fails.
package struct CodingLimits: Hashable, Sendable {
  /// The codings on top of each other, all `Content-Encoding` lines together. Each costs about 60 KiB of memory and
  /// multiplies the work for a byte: a field of a few hundred bytes could name a thousand of them. No server is known
  /// to use more than two, and other clients stop at five, too.
  package var layersMax = 5

  /// How many bytes may come out for each byte that has come in. A bomb is a small body that fills a disk or a memory.
  /// Deflate itself cannot grow by more than 1032, and comes near to it for nothing but one byte repeated: what passes
  /// this limit is that, or codings nested to get beyond it. No browser and no curl has such a limit; those who have one
  /// (Apache's mod_deflate: 200) apply it to requests, which are smaller.
  package var expansionMax: UInt64 = 1000

  /// What may come out before `expansionMax` counts, in bytes. An empty log or a blank image may well shrink to nothing.
  package var bytesOutAlways: UInt64 = 10 << 20

  package init() {}

  /// Whether `output` bytes may have come out of `input` bytes.
  func permits(_ output: UInt64, from input: UInt64) -> Bool {
    if output <= bytesOutAlways { return true }
    let (most, overflows) = input.multipliedReportingOverflow(by: expansionMax)
    return overflows || output <= most
  }
}
