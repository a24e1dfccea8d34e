/// Undoes the content codings of one body, step by step.
///
/// The decompressor keeps no final output: a piece of input may give a thousand times as many bytes, so the caller
/// brings a buffer, of 64 KiB for example, and calls again as long as there is more. Input that is not decoded yet
/// stays with the caller, so that a slow reader stops the socket.
///
/// ```swift
/// var consumed = 0
/// var progress = Decompressor.Progress.hasMore
/// while progress == .hasMore {
///   chunk.withSpare { room in progress = try decompressor.decode(piece, consumed: &consumed, into: &room) }
///   // hand over the chunk's bytes
/// }
/// // `piece` is used up: bring the next one, or call `finish()` at the end of the body
/// ```
///
/// After an error the value must not be used any more. No memory is allocated once every layer has received its first
/// bytes.
///
/// `@unchecked Sendable`: a value has one owner, on any thread, and all objects that it refers to belong to it alone.
package struct Decompressor: ~Copyable, @unchecked Sendable {
  package enum Progress: Hashable, Sendable {
    /// The input is used up, and all of its output has been written.
    case needsInput
    /// Output may remain. Call again, with the rest of the input and with free room.
    case hasMore
  }

  /// Maximum number of times that one call fills a stage. Without it, layers whose output is ignored, behind the end of
  /// an inner stream, could keep one call busy for long.
  private static let refillsMax = 64

  /// The layers in the order in which they are undone: the coding that was applied last is the first.
  private let layers: [CodingLayer]
  private let limits: CodingLimits
  /// Number of bytes of input that have been decoded.
  package private(set) var bytesIn: UInt64 = 0
  private var refillsLeft = 0

  /// Creates a decompressor.
  ///
  /// - Parameter codings: The codings in the order in which they were applied, as the fields name them.
  /// - Throws: `peerSentTooManyLayers` if there are more than ``CodingLimits/layersMax``.
  package init(_ codings: [ContentCoding], limits: CodingLimits = CodingLimits()) throws(CodingError) {
    guard codings.count <= limits.layersMax else { throw .peerSentTooManyLayers }
    var layers: [CodingLayer] = []
    for coding in codings.reversed() { layers.append(try CodingLayer(coding)) }
    self.layers = layers
    self.limits = limits
  }

  /// Creates a decompressor for the codings of a response's fields, or returns `nil` if there is no coding to undo.
  package init?(_ codings: ContentCodings, limits: CodingLimits = CodingLimits()) throws(CodingError) {
    guard !codings.isEmpty else { return nil }
    try self.init(codings.layers, limits: limits)
  }

  /// Number of bytes of output.
  package var bytesOut: UInt64 { layers.last?.bytesOut ?? bytesIn }

  /// Decodes bytes of `input` from `consumed` on, and appends their output to `output`.
  package mutating func decode(
    _ input: Span<UInt8>, consumed: inout Int, into output: inout OutputRawSpan
  ) throws(CodingError) -> Progress {
    guard 0...input.count ~= consumed else { throw .internalInconsistency(zlib: 0) }
    guard !layers.isEmpty else { return copy(input, &consumed, &output) }
    refillsLeft = Self.refillsMax
    try pull(from: layers.count - 1, input, &consumed, &output)
    return consumed < input.count || output.freeCapacity == 0 || refillsLeft <= 0 ? .hasMore : .needsInput
  }

  /// Ends the body, all of which has been decoded.
  ///
  /// - Throws: `peerSentTruncated` if the body ends within a stream.
  package func finish() throws(CodingError) {
    for layer in layers { try layer.finish() }
  }

  /// Writes the output of the layer at `index`, until the input is used up or the output is full.
  private mutating func pull(
    from index: Int, _ input: Span<UInt8>, _ consumed: inout Int, _ output: inout OutputRawSpan
  ) throws(CodingError) {
    let layer = layers[index]
    guard index > 0 else {
      let before = consumed
      defer { bytesIn += UInt64(consumed - before) }
      try layer.run(input, consumed: &consumed, into: &output)
      return try check(layer, bytesIn + UInt64(consumed - before))
    }
    while output.freeCapacity > 0 {
      if layer.isHungry {
        refillsLeft -= 1
        guard refillsLeft > 0 else { return }
        try layer.feed { room throws(CodingError) in
          try pull(from: index - 1, input, &consumed, &room)
        }
      }
      let isLast = layer.isHungry
      try layer.run(into: &output)
      try check(layer, bytesIn)
      if isLast { return }
    }
  }

  private func check(_ layer: CodingLayer, _ bytesIn: UInt64) throws(CodingError) {
    guard limits.permits(layer.bytesOut, from: bytesIn) else { throw .peerSentBomb }
  }

  /// Copies the bytes unchanged: there is no coding.
  private mutating func copy(
    _ input: Span<UInt8>, _ consumed: inout Int, _ output: inout OutputRawSpan
  ) -> Progress {
    let count = min(input.count - consumed, output.freeCapacity)
    for index in consumed..<consumed + count { output.append(input[index]) }
    consumed += count
    bytesIn += UInt64(count)
    return consumed < input.count ? .hasMore : .needsInput
  }
}
