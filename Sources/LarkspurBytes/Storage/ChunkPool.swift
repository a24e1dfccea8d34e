/// A pool of reusable chunks, last in first out, so that reused memory is still in the processor's cache.
///
/// A pool belongs to one loop. Its chunk sizes are powers of two from 16 KiB to 512 KiB. The pool keeps at most
/// `bytesMax` bytes, and frees chunks that exceed them.
@safe
public struct ChunkPool: ~Copyable {
  public static let smallest = 16 * 1024
  public static let largest = 512 * 1024
  /// For each size, the first chunk of a linked list. The memory of each chunk begins with the pointer to the next one.
  /// Safe: the pool is the only owner.
  private var free = unsafe InlineArray<6, UnsafeMutableRawPointer?>(repeating: nil)
  private var byteCount = 0
  private let bytesMax: Int
  /// The number of bytes that were taken and not recycled yet.
  public private(set) var bytesLent = 0
  /// The chunk that was recycled last. Performance: often it is the only one, and is taken and recycled without the
  /// lists.
  private var latest = Chunk()

  public init(bytesMax: Int = 1024 * 1024) {
    self.bytesMax = bytesMax
  }

  deinit {
    // Safe: every pointer here was surrendered by a chunk, and only the pool owns it.
    for size in unsafe free.indices {
      var next = unsafe free[size]
      while let base = unsafe next {
        unsafe next = base.load(as: UnsafeMutableRawPointer?.self)
        unsafe base.deallocate()
      }
    }
  }

  /// Returns a chunk of at least `capacity` bytes. A chunk beyond the largest size has exactly that capacity, and is
  /// never pooled.
  public mutating func take(atLeast capacity: Int) -> Chunk {
    guard let size = Self.size(holding: capacity) else {
      bytesLent &+= capacity
      return Chunk(capacity: capacity)
    }
    let rounded = Self.smallest << size
    bytesLent &+= rounded
    if latest.capacity == rounded {
      var chunk = Chunk()
      swap(&chunk, &latest)
      byteCount -= rounded
      return chunk
    }
    // Safe: the pool owned `base`, which has `rounded` bytes, and has removed it.
    guard let base = unsafe takeFree(size) else { return Chunk(capacity: rounded) }
    byteCount -= rounded
    return unsafe Chunk(adopting: base, capacity: rounded)
  }

  public mutating func recycle(_ chunk: consuming Chunk) {
    bytesLent &-= chunk.capacity
    guard Self.isPooled(chunk.capacity) else { return }
    // The chunk that was recycled last has the size that is likely to be needed next. Larger chunks make room for it.
    // If there are none, it is freed.
    while byteCount + chunk.capacity > bytesMax {
      guard freeLargest(above: chunk.capacity) else { return }
    }
    byteCount += chunk.capacity
    chunk.drop(chunk.count)
    swap(&chunk, &latest)
    let capacity = chunk.capacity
    // Safe: from here on only the pool owns the memory.
    guard let size = Self.size(holding: capacity), let base = unsafe chunk.surrender() else { return }
    unsafe base.storeBytes(of: free[size], as: UnsafeMutableRawPointer?.self)
    unsafe free[size] = base
  }

  @unsafe
  private mutating func takeFree(_ size: Int) -> UnsafeMutableRawPointer? {
    // Safe: the pool owns the chunks in its lists, and each of them begins with the pointer to the next one.
    guard let base = unsafe free[size] else { return nil }
    unsafe free[size] = base.load(as: UnsafeMutableRawPointer?.self)
    return unsafe base
  }

  /// Frees one chunk of a larger size. Returns `false` if there is none.
  private mutating func freeLargest(above capacity: Int) -> Bool {
    var size = unsafe free.count - 1
    while size >= 0, Self.smallest << size > capacity {
      // Safe: the pool owned the chunk, and has removed it.
      if let base = unsafe takeFree(size) {
        byteCount -= Self.smallest << size
        unsafe base.deallocate()
        return true
      }
      size -= 1
    }
    guard latest.capacity > capacity else { return false }
    byteCount -= latest.capacity
    latest = Chunk()
    return true
  }

  /// Whether the pool keeps chunks of this size.
  private static func isPooled(_ capacity: Int) -> Bool {
    smallest...largest ~= capacity && capacity & (capacity - 1) == 0
  }

  private static func size(holding capacity: Int) -> Int? {
    guard capacity <= largest else { return nil }
    // The index of the size is the number of significant bits in this quotient.
    return Int.bitWidth - (max(capacity - 1, 0) / smallest).leadingZeroBitCount
  }
}
