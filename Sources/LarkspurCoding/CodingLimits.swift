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

  /// Number of bytes of one inflated WebSocket message that are permitted whatever the ratio is: `expansionMax` applies
  /// above it. A message of 1 KiB could otherwise become 1 MiB of work and memory many times a second. The default is
  /// the greatest message that a WebSocket task accepts by default, so that the ratio matters to programs that accept
  /// longer ones.
  package var messageBytesOutAlways: UInt64 = 1 << 20

  package init() {}

  /// Whether `output` bytes of a body are permitted from `input` bytes.
  func permits(_ output: UInt64, from input: UInt64) -> Bool {
    permits(output, from: input, always: bytesOutAlways)
  }

  /// Whether `output` bytes of a message are permitted from `input` bytes.
  func permitsMessage(_ output: UInt64, from input: UInt64) -> Bool {
    permits(output, from: input, always: messageBytesOutAlways)
  }

  private func permits(_ output: UInt64, from input: UInt64, always: UInt64) -> Bool {
    if output <= always { return true }
    let (most, overflows) = input.multipliedReportingOverflow(by: expansionMax)
    return overflows || output <= most
  }
}
