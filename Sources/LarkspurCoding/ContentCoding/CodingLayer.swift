/// Undoes one coding of a body.
///
/// ```
///   gzip                                    deflate
///
///   inside <--- the next member ---.        opening: two bytes mean zlib or raw
///     |                            |           |
///     '-- end of the member --> between     inside
///                                  |           |
///                  anything else --'           '-- end of the stream --> past
///                                  '--> past
/// ```
///
/// Consecutive gzip members form one body (RFC 1952, section 2.2). Bytes after the end of a stream that do not begin
/// another member are ignored: zeros that pad a block, an empty line, or other additions of a server or script. Chrome
/// and Firefox ignore them, too; curl fails. A member begins with `1f 8b 08`: after these bytes each deviation is an
/// error.
final class CodingLayer {
  let coding: ContentCoding
  /// The output of the previous layer that this layer has not consumed yet. The first layer reads the caller's input
  /// instead.
  private var incoming = StageBuffer()
  /// Number of bytes that the layer has produced.
  private(set) var bytesOut: UInt64 = 0

  private enum State {
    case opening
    case inside
    case between
    case past
  }

  private var state: State
  private var inflater: Inflater
  /// Bytes of the input that were examined and are not inflated yet, from `heldStart` on.
  private var held: [UInt8] = []
  private var heldStart = 0
  /// Whether no byte has arrived yet. An empty body is not a truncated one: the response to a HEAD, or an empty
  /// file that was not compressed.
  private var isUntouched = true

  private static let memberMagic: [UInt8] = [0x1f, 0x8b, 8]

  init(_ coding: ContentCoding) throws(CodingError) {
    self.coding = coding
    inflater = try Inflater(coding == .gzip ? .gzip : .zlib)
    state = coding == .gzip ? .inside : .opening
    held.reserveCapacity(Self.memberMagic.count)
  }

  /// Decodes the input from `consumed` on until it is used up or the output is full.
  func run(_ input: Span<UInt8>, consumed: inout Int, into output: inout OutputRawSpan) throws(CodingError) {
    if consumed < input.count { isUntouched = false }
    let before = output.byteCount
    defer { bytesOut += UInt64(output.byteCount - before) }
    while true {
      switch state {
      case .opening:
        guard try open(input, &consumed) else { return }
      case .inside:
        guard try inflate(input, &consumed, &output) else { return }
      case .between:
        guard try seekMember(input, &consumed) else { return }
      case .past:
        consumed = input.count
        return
      }
    }
  }

  /// Whether all output of the previous layer is consumed.
  var isHungry: Bool { incoming.isEmpty }

  /// Lets the previous layer write its output for this layer, whose own input must be used up (`isHungry`).
  func feed(_ fill: (inout OutputRawSpan) throws(CodingError) -> Void) throws(CodingError) {
    try incoming.fill(fill)
  }

  /// Decodes the input that `feed` has brought.
  func run(into output: inout OutputRawSpan) throws(CodingError) {
    // A stored property of a class cannot be lent to a method of the same object, so the buffer is moved out. If `run`
    // throws, the buffer is lost, which is harmless: after an error the layer is not used again.
    var fed = StageBuffer()
    swap(&fed, &incoming)
    var consumed = 0
    try run(fed.bytes, consumed: &consumed, into: &output)
    fed.drop(consumed)
    swap(&fed, &incoming)
  }

  /// Ends the body.
  ///
  /// - Throws: `peerSentTruncated` if the body ends within a stream.
  func finish() throws(CodingError) {
    switch state {
    case .between, .past: return
    case .opening, .inside: if !isUntouched { throw .peerSentTruncated(coding) }
    }
  }

  // MARK: - The states

  /// Each of these functions returns whether the state has changed; if not, the input is used up or the output is full.
  private func open(_ input: Span<UInt8>, _ consumed: inout Int) throws(CodingError) -> Bool {
    while held.count < 2 {
      guard consumed < input.count else { return false }
      held.append(input[consumed])
      consumed += 1
    }
    // RFC 1950, section 2.2: method 8, a window of at most 32 KiB, and a check. In a raw stream the first byte would
    // mean a stored block whose padding is not zero, which no known encoder writes.
    let isZlib = held[0] & 15 == 8 && held[0] >> 4 <= 7 && (Int(held[0]) << 8 | Int(held[1])) % 31 == 0
    try inflater.reset(isZlib ? .zlib : .rawDeflate)
    state = .inside
    return true
  }

  private func inflate(
    _ input: Span<UInt8>, _ consumed: inout Int, _ output: inout OutputRawSpan
  ) throws(CodingError) -> Bool {
    // Call zlib once more than there is input: zlib may hold back output that did not fit before.
    while output.freeCapacity > 0 {
      let isHeld = heldStart < held.count
      let outcome =
        isHeld ? try inflateHeld(&output) : try inflater.run(input, consumed: &consumed, into: &output)
      switch outcome {
      case .invalid: throw .peerSentInvalid(coding)
      case .ended:
        forgetHeld()
        state = coding == .gzip ? .between : .past
        return true
      case .going: if !isHeld, consumed == input.count { return false }
      }
    }
    return false
  }

  private func inflateHeld(_ output: inout OutputRawSpan) throws(CodingError) -> Inflater.Outcome {
    var bytes: [UInt8] = []
    swap(&bytes, &held)
    let outcome = try inflater.run(bytes.span, consumed: &heldStart, into: &output)
    swap(&bytes, &held)
    if heldStart == held.count { forgetHeld() }
    return outcome
  }

  private func seekMember(_ input: Span<UInt8>, _ consumed: inout Int) throws(CodingError) -> Bool {
    while held.count < Self.memberMagic.count {
      guard consumed < input.count else { return false }
      guard input[consumed] == Self.memberMagic[held.count] else {
        state = .past
        return true
      }
      held.append(input[consumed])
      consumed += 1
    }
    try inflater.reset(.gzip)
    state = .inside
    return true
  }

  private func forgetHeld() {
    held.removeAll(keepingCapacity: true)
    heldStart = 0
  }
}
