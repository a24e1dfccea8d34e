/// A memory buffer with a single owner. Bytes are appended at the back and read from the front.
///
/// ```
///   base        start          end          capacity
///    |  dropped   |   bytes     |    spare    |
/// ```
///
/// A chunk frees its memory at the end of its life, unless it was returned to a `ChunkPool`. `Chunk()` has no memory
/// and costs nothing, and serves as an empty placeholder.
@safe
public struct Chunk: ~Copyable {
  /// The memory, or `nil` for the empty chunk only.
  @usableFromInline let base: UnsafeMutableRawPointer?
  public let capacity: Int
  @usableFromInline var start = 0
  @usableFromInline var end = 0

  @inlinable
  public init() {
    // Safe: there is nothing to own, and every use of `base` checks for `nil`.
    unsafe base = nil
    capacity = 0
  }

  public init(capacity: Int) {
    unsafe self.init(adopting: .allocate(byteCount: capacity, alignment: 16), capacity: capacity)
  }

  @unsafe
  init(adopting base: UnsafeMutableRawPointer, capacity: Int) {
    unsafe self.base = base
    self.capacity = capacity
  }

  @inlinable
  deinit {
    // Safe: `base` came from `allocate`, and `surrender` discards self without running this.
    unsafe base?.deallocate()
  }

  /// Transfers the memory to a pool, which then owns it.
  @unsafe
  consuming func surrender() -> UnsafeMutableRawPointer? {
    let base = unsafe base
    discard self
    return unsafe base
  }

  /// The number of unread bytes.
  @inlinable
  public var count: Int { end - start }

  /// The number of bytes that fit behind the last one.
  @inlinable
  public var spareCapacity: Int { capacity - end }

  /// The unread bytes.
  public var bytes: Span<UInt8> {
    @inlinable
    @_lifetime(borrow self)
    get {
      guard let base = unsafe base else { return Span() }
      // Safe: start..<end lies inside the allocation, `withSpare` or `append` initialized all of it, and the span
      // cannot outlive this borrow of the chunk.
      let raw = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(base + start), byteCount: end - start)
      let span = Span<UInt8>(_bytes: raw)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Lends a range of the unread bytes.
  @inlinable
  public func lend(_ range: Range<Int>, to consume: (Span<UInt8>) -> Void) {
    consume(bytes.extracting(range))
  }

  /// Removes the first `count` bytes. When none are left, the whole capacity is spare again.
  @inlinable
  public mutating func drop(_ count: Int) {
    start = min(start + max(count, 0), end)
    if start == end {
      start = 0
      end = 0
    }
  }

  /// Lends the spare capacity to `fill`, and keeps the bytes that `fill` appends.
  @inlinable
  public mutating func withSpare(_ fill: (inout OutputRawSpan) -> Void) {
    // Safe: the pointer is only checked for `nil`.
    guard let base = unsafe base else {
      var nothing = OutputRawSpan()
      return fill(&nothing)
    }
    // Safe: end..<capacity lies inside the allocation; `finalize` checks that the span still describes it.
    let spare = unsafe UnsafeMutableRawBufferPointer(start: base + end, count: capacity - end)
    var output = unsafe OutputRawSpan(buffer: spare, initializedCount: 0)
    fill(&output)
    end += unsafe output.finalize(for: spare)
  }

  /// Moves the unread bytes to the front, so that all spare capacity is behind them.
  public mutating func compact() {
    guard start > 0, let base = unsafe base else { return }
    // Safe: both ranges lie inside the allocation; `copyMemory` allows overlap.
    unsafe base.copyMemory(from: base + start, byteCount: end - start)
    end -= start
    start = 0
  }

  /// Appends as many bytes of `source` as fit, and returns their number.
  @inlinable
  public mutating func append(_ source: Span<UInt8>) -> Int {
    guard let base = unsafe base else { return 0 }
    let count = min(source.count, spareCapacity)
    unsafe source.withUnsafeBytes { bytes in
      guard count > 0, let from = bytes.baseAddress else { return }
      // Safe: `count` bytes are readable at `from` and writable at `end`, and a borrowed span cannot overlap a
      // chunk that is being mutated.
      unsafe (base + end).copyMemory(from: from, byteCount: count)
    }
    end += count
    return count
  }
}

extension [UInt8] {
  /// Replaces the contents with a copy of `bytes`. Keeps the storage if it is large enough.
  package mutating func assign(copying bytes: Span<UInt8>) {
    // Performance: the heads of one server's responses often have the same size. Then only the bytes are replaced.
    guard count == bytes.count else {
      removeAll(keepingCapacity: true)
      return append(copying: bytes)
    }
    // Safe: both have the same size, and a mutated array cannot share memory with a borrowed span.
    unsafe withUnsafeMutableBytes { target in
      unsafe bytes.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    }
  }

  /// Appends a copy of `bytes`.
  package mutating func append(copying bytes: Span<UInt8>) {
    // Safe: the buffer is lent for the copy, and a mutated array cannot share memory with a borrowed span.
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }
}
