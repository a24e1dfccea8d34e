/// Room between two layers: what the one has put out and the other not yet taken in.
@safe
struct StageBuffer: ~Copyable {
  /// What one layer may be ahead of the next, in bytes.
  static let capacity = 16 << 10

  /// Nil until it is filled for the first time.
  private var base: UnsafeMutableRawPointer?
  private var start = 0
  private var end = 0

  init() {
    // Safe: there is nothing to own yet.
    unsafe base = nil
  }

  deinit {
    // Safe: it is ours alone.
    unsafe base?.deallocate()
  }

  var isEmpty: Bool { start == end }

  /// The bytes that are not taken in yet.
  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get {
      guard let base = unsafe base else { return Span() }
      // Safe: start..<end was initialised by `fill`, and the span cannot outlive this borrow of the buffer.
      let raw = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(base + start), byteCount: end - start)
      let span = Span<UInt8>(_bytes: raw)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Forgets the first `count` bytes.
  mutating func drop(_ count: Int) { start = min(start + max(count, 0), end) }

  /// Fills the buffer, which has to be empty. An error leaves it empty.
  mutating func fill(_ fill: (inout OutputRawSpan) throws(CodingError) -> Void) throws(CodingError) {
    start = 0
    end = 0
    // Safe: the whole allocation is lent for the call; `finalize` checks that the span still describes it.
    let memory = unsafe base ?? .allocate(byteCount: Self.capacity, alignment: 16)
    unsafe base = memory
    let room = unsafe UnsafeMutableRawBufferPointer(start: memory, count: Self.capacity)
    var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
    try fill(&output)
    end = unsafe output.finalize(for: room)
  }
}
