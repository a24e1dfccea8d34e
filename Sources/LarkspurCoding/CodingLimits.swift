/// Limits on the work that a peer's content coding can cause. Every limit is inclusive: the value itself passes, one
/// more fails.
package struct CodingLimits: Hashable, Sendable {
  /// Maximum number of nested codings, all `Content-Encoding` lines together. Each costs about 60 KiB of memory and
  /// multiplies the work for a byte, and a field of a few hundred bytes could name many of them. No server is known to
  /// use more than two, and other clients stop at five, too.
  package var layersMax = 5

  /// Maximum number of bytes of output for each byte of input. A decompression bomb is a small body that fills a disk
  /// or the memory. Deflate itself cannot grow by more than 1032, and comes near that only for one repeated byte: a
  /// body that exceeds this limit is such a run, or uses nested codings to exceed that ratio. No browser has such a
  /// limit, and neither has curl; servers that have one (Apache's mod_deflate: 200) apply it to requests, which are
  /// smaller.
  package var expansionMax: UInt64 = 1000

  /// Number of bytes of output that are permitted whatever the ratio is: `expansionMax` applies above it. An empty log
  /// or a blank image may well shrink to almost nothing.
  package var bytesOutAlways: UInt64 = 10 << 20

  package init() {}

  /// Whether `output` bytes are permitted from `input` bytes.
  func permits(_ output: UInt64, from input: UInt64) -> Bool {
    if output <= bytesOutAlways { return true }
    let (most, overflows) = input.multipliedReportingOverflow(by: expansionMax)
    return overflows || output <= most
  }
}
