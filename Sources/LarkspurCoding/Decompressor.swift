/// Undoes the content codings of one body, step by step.
///
/// It holds no output: what comes out of a piece of input may be a thousand times as long, so the caller brings a buffer,
/// of 64 KiB for example, and asks again as long as there is more. A step that is not asked for is not made, and its input
/// stays with the caller: a slow reader stops the socket.
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
/// After an error it is of no use any more. Nothing is allocated once every layer has seen its first bytes.
///
/// A value has one owner, who may be on any thread: all that it refers to belongs to it alone.
package struct Decompressor: ~Copyable, @unchecked Sendable {
  package enum Progress: Hashable, Sendable {
    /// The input is used up, and all that comes of it has come out.
    case needsInput
    /// Call again, with the rest of the same input and with room.
    case hasMore
  }

  /// How often one call fills a stage. Layers whose output nobody wants, behind the end of an inner stream, would otherwise
  /// keep one call busy for long.
  private static let refillsMax = 64

  /// In the order in which they are undone: the coding that was applied last is the first.
  private let layers: [CodingLayer]
  private let limits: CodingLimits
  /// How much has come in, in bytes.
  package private(set) var bytesIn: UInt64 = 0
  private var refillsLeft = 0

  /// `codings` in the order in which they were applied, as the fields name them.
  package init(_ codings: [ContentCoding], limits: CodingLimits = CodingLimits()) throws(CodingError) {
    guard codings.count <= limits.layersMax else { throw .peerSentTooManyLayers }
    var layers: [CodingLayer] = []
    for coding in codings.reversed() { layers.append(try CodingLayer(coding)) }
    self.layers = layers
    self.limits = limits
  }

  /// For what the fields of a response say. Nil: there is nothing to undo.
  package init?(_ codings: ContentCodings, limits: CodingLimits = CodingLimits()) throws(CodingError) {
    guard !codings.isEmpty else { return nil }
    try self.init(codings.layers, limits: limits)
  }

  /// How much has come out, in bytes.
  package var bytesOut: UInt64 { layers.last?.bytesOut ?? bytesIn }

  /// Takes in bytes of `input` from `consumed` on, and appends to `output` what comes out for them.
  package mutating func decode(
    _ input: Span<UInt8>, consumed: inout Int, into output: inout OutputRawSpan
  ) throws(CodingError) -> Progress {
    guard 0...input.count ~= consumed else { throw .internalInconsistency(zlib: 0) }
    guard !layers.isEmpty else { return copy(input, &consumed, &output) }
    refillsLeft = Self.refillsMax
    try pull(from: layers.count - 1, input, &consumed, &output)
    return consumed < input.count || output.freeCapacity == 0 || refillsLeft <= 0 ? .hasMore : .needsInput
  }

  /// The body has ended, and all of it has been decoded. Throws if that was within a stream.
  package func finish() throws(CodingError) {
    for layer in layers { try layer.finish() }
  }

  /// Brings out what the layer at `index` makes of the input, until that is used up or the output is full.
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

  /// Without a coding the bytes pass as they are.
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
