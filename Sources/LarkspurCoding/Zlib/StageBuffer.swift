/// A buffer between two layers: the output of one layer that the next has not consumed yet.
@safe
struct StageBuffer: ~Copyable {
  /// Maximum number of bytes that one layer is ahead of the next.
  static let capacity = 16 << 10

  /// The allocation, or `nil` until the first `fill`.
  private var base: UnsafeMutableRawPointer?
  private var start = 0
  private var end = 0

  init() {
    // Safe: there is no allocation to own yet.
    unsafe base = nil
  }

  deinit {
    // Safe: this value alone owns the allocation.
    unsafe base?.deallocate()
  }

  var isEmpty: Bool { start == end }

  /// The bytes that the next layer has not consumed yet.
  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get {
      guard let base = unsafe base else { return Span() }
      // Safe: `fill` has initialized start..<end, and the span cannot outlive this borrow of the buffer.
      let raw = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(base + start), byteCount: end - start)
      let span = Span<UInt8>(_bytes: raw)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Drops the first `count` bytes.
  mutating func drop(_ count: Int) { start = min(start + max(count, 0), end) }

  /// Fills the buffer, which must be empty. If `fill` throws, the buffer stays empty.
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
