/// A buffer of raw memory with one owner: bytes are appended at the back and read from the front.
///
/// ```
///   base        start          end          capacity
///    |  dropped   |   bytes     |    spare    |
/// ```
///
/// A chunk that nobody gives back to a `ChunkPool` frees its memory when it goes out of scope. `Chunk()` holds
/// nothing and costs nothing: it stands where a chunk may come.
@safe
public struct Chunk: ~Copyable {
  /// Nil for the empty chunk only.
  @usableFromInline let base: UnsafeMutableRawPointer?
  public let capacity: Int
  @usableFromInline var start = 0
  @usableFromInline var end = 0

  @inlinable
  public init() {
    // Safe: there is nothing to own, and every use of `base` asks whether it is there.
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
    // Safe: `base` came from `allocate` and `surrender` discards self before this could run.
    unsafe base?.deallocate()
  }

  /// Hands the memory over to a pool, which then owns it.
  @unsafe
  consuming func surrender() -> UnsafeMutableRawPointer? {
    let base = unsafe base
    discard self
    return unsafe base
  }

  /// The number of bytes that are waiting to be read.
  @inlinable
  public var count: Int { end - start }

  /// The number of bytes that fit behind the last one.
  @inlinable
  public var spareCapacity: Int { capacity - end }

  /// The bytes that are waiting to be read.
  public var bytes: Span<UInt8> {
    @inlinable
    @_lifetime(borrow self)
    get {
      guard let base = unsafe base else { return Span() }
      // Safe: start...end lies inside the allocation, all of it was initialised by `withSpare` or `append`,
      // and the span cannot outlive this borrow of the chunk.
      let raw = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(base + start), byteCount: end - start)
      let span = Span<UInt8>(_bytes: raw)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Lends some of the bytes that are waiting to be read.
  @inlinable
  public func lend(_ range: Range<Int>, to consume: (Span<UInt8>) -> Void) {
    consume(bytes.extracting(range))
  }

  /// Forgets the first `count` bytes. When none are left, the whole capacity is spare again.
  @inlinable
  public mutating func drop(_ count: Int) {
    start = min(start + max(count, 0), end)
    if start == end {
      start = 0
      end = 0
    }
  }

  /// Lends the spare capacity to `fill`, and keeps what it appended there.
  @inlinable
  public mutating func withSpare(_ fill: (inout OutputRawSpan) -> Void) {
    // Safe: only asked whether it is there.
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

  /// Moves the unread bytes to the front, so that all spare room is behind them.
  public mutating func compact() {
    guard start > 0, let base = unsafe base else { return }
    // Safe: both ranges lie inside the allocation; `copyMemory` allows overlap.
    unsafe base.copyMemory(from: base + start, byteCount: end - start)
    end -= start
    start = 0
  }

  /// Appends as many of `source`'s bytes as fit and returns how many did.
  @inlinable
  public mutating func append(_ source: Span<UInt8>) -> Int {
    guard let base = unsafe base else { return 0 }
    let count = min(source.count, spareCapacity)
    unsafe source.withUnsafeBytes { bytes in
      guard count > 0, let from = bytes.baseAddress else { return }
      // Safe: `count` bytes are readable at `from` and writable at `end`, and a borrowed span cannot
      // overlap a chunk that is being mutated.
      unsafe (base + end).copyMemory(from: from, byteCount: count)
    }
    end += count
    return count
  }
}

extension [UInt8] {
  /// Becomes a copy of `bytes`, in the same storage if it is large enough.
  package mutating func assign(copying bytes: Span<UInt8>) {
    // The heads of one server's responses are often of one size: then the array stays as it is, but for its bytes.
    guard count == bytes.count else {
      removeAll(keepingCapacity: true)
      return append(copying: bytes)
    }
    // Safe: both are of one size, and a mutated array cannot share memory with a borrowed span.
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
