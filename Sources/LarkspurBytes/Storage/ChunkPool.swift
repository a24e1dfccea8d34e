/// Chunks waiting to be used again, last in first out, so that the memory which comes back is still in the cache.
///
/// A pool belongs to one loop. Its sizes are powers of two from 16 KiB to 512 KiB, and it keeps at most
/// `bytesMax` bytes; what comes back beyond that is freed.
@safe
public struct ChunkPool: ~Copyable {
  public static let smallest = 16 * 1024
  public static let largest = 512 * 1024
  /// For each size the first of its chunks, in whose memory the place of the next one stands. (Safe: nobody else has them.)
  private var free = unsafe InlineArray<6, UnsafeMutableRawPointer?>(repeating: nil)
  private var byteCount = 0
  private let bytesMax: Int
  /// How many bytes have been taken and not come back.
  public private(set) var bytesLent = 0
  /// The chunk that came back last: in steady state it is the only one, and goes back and forth without a look at
  /// the lists.
  private var latest = Chunk()

  public init(bytesMax: Int = 1024 * 1024) {
    self.bytesMax = bytesMax
  }

  deinit {
    // Safe: every pointer here was surrendered by a chunk and is owned by the pool alone.
    for size in unsafe free.indices {
      var next = unsafe free[size]
      while let base = unsafe next {
        unsafe next = base.load(as: UnsafeMutableRawPointer?.self)
        unsafe base.deallocate()
      }
    }
  }

  /// A chunk of at least `capacity` bytes; beyond the largest size it is made to measure and never pooled.
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
    // Safe: the pool owned `base`, which holds `rounded` bytes, and has just forgotten it.
    guard let base = unsafe takeFree(size) else { return Chunk(capacity: rounded) }
    byteCount -= rounded
    return unsafe Chunk(adopting: base, capacity: rounded)
  }

  public mutating func recycle(_ chunk: consuming Chunk) {
    bytesLent &-= chunk.capacity
    guard Self.isPooled(chunk.capacity) else { return }
    // What came back last is what will be wanted next: larger chunks make room for it, or else it goes.
    while byteCount + chunk.capacity > bytesMax {
      guard freeLargest(above: chunk.capacity) else { return }
    }
    byteCount += chunk.capacity
    chunk.drop(chunk.count)
    swap(&chunk, &latest)
    let capacity = chunk.capacity
    // Safe: the memory is the pool's from here on, and nobody else's.
    guard let size = Self.size(holding: capacity), let base = unsafe chunk.surrender() else { return }
    unsafe base.storeBytes(of: free[size], as: UnsafeMutableRawPointer?.self)
    unsafe free[size] = base
  }

  @unsafe
  private mutating func takeFree(_ size: Int) -> UnsafeMutableRawPointer? {
    // Safe: the pool owns what is in its list, and each chunk there says which is the next one.
    guard let base = unsafe free[size] else { return nil }
    unsafe free[size] = base.load(as: UnsafeMutableRawPointer?.self)
    return unsafe base
  }

  /// Frees one chunk of a larger size. False: there is none.
  private mutating func freeLargest(above capacity: Int) -> Bool {
    var size = unsafe free.count - 1
    while size >= 0, Self.smallest << size > capacity {
      // Safe: the pool owned it, and has just forgotten it.
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

  /// Whether chunks of this size are kept.
  private static func isPooled(_ capacity: Int) -> Bool {
    smallest...largest ~= capacity && capacity & (capacity - 1) == 0
  }

  private static func size(holding capacity: Int) -> Int? {
    guard capacity <= largest else { return nil }
    // Each bit of how often the smallest size fits in is a size more.
    return Int.bitWidth - (max(capacity - 1, 0) / smallest).leadingZeroBitCount
  }
}
