import CAllocations
import LarkspurBytes
import Testing

@Suite struct ChunkPoolTests {
  private static func capacity(_ pool: inout ChunkPool, atLeast capacity: Int) -> Int {
    let chunk = pool.take(atLeast: capacity)
    let given = chunk.capacity
    pool.recycle(chunk)
    return given
  }

  @Test func sizesArePowersOfTwo() {
    var pool = ChunkPool()
    let kib = 1024
    for (asked, given) in [
      (0, 16 * kib), (1, 16 * kib), (16 * kib, 16 * kib), (16 * kib + 1, 32 * kib), (100 * kib, 128 * kib),
      (512 * kib, 512 * kib),
    ] {
      let capacity = Self.capacity(&pool, atLeast: asked)
      #expect(capacity == given, "asked for \(asked)")
    }
  }

  @Test func beyondTheLargestIsMadeToMeasure() {
    var pool = ChunkPool(bytesMax: .max)
    let asked = ChunkPool.largest + 1
    let first = Self.capacity(&pool, atLeast: asked)
    // If the pool had kept the chunk, it would return the chunk here instead of a smaller one.
    let next = Self.capacity(&pool, atLeast: ChunkPool.largest)
    #expect((first, next) == (asked, ChunkPool.largest))
  }

  @Test func aChunkComesBackEmpty() {
    var pool = ChunkPool()
    var chunk = pool.take(atLeast: 1)
    let bytes: [UInt8] = [1, 2, 3]
    _ = chunk.append(bytes.span)
    chunk.drop(1)
    pool.recycle(chunk)
    let again = pool.take(atLeast: 1)
    let (count, spare) = (again.count, again.spareCapacity)
    #expect((count, spare) == (0, ChunkPool.smallest))
  }

  /// Large chunks in the pool do not crowd out the small ones, which every request needs.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc"))
  func largeChunksMakeRoom() {
    var pool = ChunkPool(bytesMax: 4 * ChunkPool.largest)
    var large: [Int] = []
    func fill(_ count: Int, _ pool: inout ChunkPool) {
      guard count > 0 else { return }
      let chunk = pool.take(atLeast: ChunkPool.largest)
      fill(count - 1, &pool)
      large.append(chunk.capacity)
      pool.recycle(chunk)
    }
    fill(4, &pool)
    #expect(large == Array(repeating: ChunkPool.largest, count: 4))
    pool.recycle(pool.take(atLeast: 1))
    let before = larkspur_allocations()
    for _ in 0..<100 { pool.recycle(pool.take(atLeast: 1)) }
    #expect(larkspur_allocations() - before == 0)
  }

  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc"))
  func whatComesBackIsUsedAgain() {
    var pool = ChunkPool(bytesMax: 3 * ChunkPool.smallest)
    func takeAndReturn(_ pool: inout ChunkPool) {
      let one = pool.take(atLeast: 1)
      let two = pool.take(atLeast: 1)
      let three = pool.take(atLeast: 1)
      pool.recycle(one)
      pool.recycle(two)
      pool.recycle(three)
    }
    takeAndReturn(&pool)
    let before = larkspur_allocations()
    for _ in 0..<100 { takeAndReturn(&pool) }
    #expect(larkspur_allocations() - before == 0)
  }

  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc"))
  func whatIsTooMuchIsFreed() {
    func allocations(ofTaking pool: inout ChunkPool) -> UInt64 {
      let before = larkspur_allocations()
      let one = pool.take(atLeast: 1)
      let two = pool.take(atLeast: 1)
      let three = pool.take(atLeast: 1)
      let allocations = larkspur_allocations() - before
      pool.recycle(one)
      pool.recycle(two)
      pool.recycle(three)
      return allocations
    }
    // The first use of a type may make the runtime allocate.
    var other = ChunkPool()
    _ = allocations(ofTaking: &other)

    var pool = ChunkPool(bytesMax: 2 * ChunkPool.smallest)
    let first = allocations(ofTaking: &pool)
    let second = allocations(ofTaking: &pool)
    #expect((first, second) == (3, 1), "two of three are kept")
  }

  @Test func theEmptyChunkIsNotKept() {
    var pool = ChunkPool()
    pool.recycle(Chunk())
    let capacity = Self.capacity(&pool, atLeast: 0)
    #expect(capacity == ChunkPool.smallest)
  }

  @Test func sizesDoNotMix() {
    var pool = ChunkPool()
    let small = pool.take(atLeast: 1)
    pool.recycle(small)
    let large = Self.capacity(&pool, atLeast: ChunkPool.smallest * 2)
    let smallAgain = Self.capacity(&pool, atLeast: ChunkPool.smallest)
    #expect((large, smallAgain) == (ChunkPool.smallest * 2, ChunkPool.smallest))
  }
}
