import CAllocations
import LarkspurBytes
import Testing

@Suite struct ChunkTests {
  private static func content(_ chunk: borrowing Chunk) -> [UInt8] {
    let bytes = chunk.bytes
    return bytes.indices.map { bytes[$0] }
  }

  private static func fill(_ chunk: inout Chunk, _ bytes: [UInt8]) -> Int {
    chunk.append(bytes.span)
  }

  @Test func isEmptyAtFirst() {
    let chunk = Chunk(capacity: 64)
    let (capacity, count, spare) = (chunk.capacity, chunk.count, chunk.spareCapacity)
    #expect((capacity, count, spare) == (64, 0, 64))
    #expect(Self.content(chunk) == [])
  }

  @Test func appendTakesWhatFits() {
    var chunk = Chunk(capacity: 5)
    let taken = [
      Self.fill(&chunk, [1, 2, 3]), Self.fill(&chunk, [4, 5, 6]), Self.fill(&chunk, [7]), Self.fill(&chunk, []),
    ]
    #expect(taken == [3, 2, 0, 0])
    #expect(Self.content(chunk) == [1, 2, 3, 4, 5])
  }

  @Test func dropForgetsFromTheFront() {
    var chunk = Chunk(capacity: 8)
    _ = Self.fill(&chunk, [1, 2, 3, 4, 5])
    chunk.drop(2)
    #expect(Self.content(chunk) == [3, 4, 5])
    let spare = chunk.spareCapacity
    #expect(spare == 3, "what was dropped is not spare yet")
    chunk.drop(-7)
    #expect(Self.content(chunk) == [3, 4, 5])
    chunk.drop(99)
    let (count, spareAfterAll) = (chunk.count, chunk.spareCapacity)
    #expect((count, spareAfterAll) == (0, 8), "an empty chunk has all its room again")
  }

  @Test func compactMovesTheRestToTheFront() {
    var chunk = Chunk(capacity: 8)
    chunk.compact()
    _ = Self.fill(&chunk, [1, 2, 3, 4, 5, 6, 7, 8])
    // More bytes stay than were dropped, so that source and target of the move overlap.
    chunk.drop(3)
    chunk.compact()
    #expect(Self.content(chunk) == [4, 5, 6, 7, 8])
    let spare = chunk.spareCapacity
    #expect(spare == 3)
    let taken = Self.fill(&chunk, [9, 10, 11, 12])
    #expect(taken == 3)
    #expect(Self.content(chunk) == [4, 5, 6, 7, 8, 9, 10, 11])
  }

  @Test func withSpareKeepsWhatWasAppended() {
    var chunk = Chunk(capacity: 4)
    _ = Self.fill(&chunk, [1])
    var room = 0
    chunk.withSpare { output in
      room = output.freeCapacity
      output.append(2)
      output.append(3)
    }
    #expect(room == 3)
    #expect(Self.content(chunk) == [1, 2, 3])
    chunk.withSpare { _ in }
    #expect(Self.content(chunk) == [1, 2, 3])
  }

  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc"))
  func theEmptyChunkCostsNothing() {
    func allocations() -> UInt64 {
      let before = larkspur_allocations()
      var chunk = Chunk()
      chunk.drop(1)
      return larkspur_allocations() - before
    }
    _ = allocations()
    #expect(allocations() == 0)
  }

  @Test(arguments: [true, false]) func aChunkWithoutRoom(hasMemory: Bool) {
    var chunk = hasMemory ? Chunk(capacity: 0) : Chunk()
    let taken = Self.fill(&chunk, [1])
    chunk.drop(1)
    chunk.compact()
    chunk.withSpare { _ in }
    #expect(taken == 0)
    #expect(Self.content(chunk) == [])
  }

  @Test func lendShowsAPart() {
    var chunk = Chunk(capacity: 8)
    _ = Self.fill(&chunk, [1, 2, 3, 4, 5])
    chunk.drop(1)
    var copy: [UInt8] = [9]
    chunk.lend(1..<3) { part in copy.append(copying: part) }
    #expect(copy == [9, 3, 4])
  }

  @Test(arguments: [[], [1, 2, 3], [4, 5, 6], [7], [8, 9, 10, 11]] as [[UInt8]])
  func assigning(bytes: [UInt8]) {
    var array: [UInt8] = [0, 0, 0]
    let copy = array
    array.assign(copying: bytes.span)
    #expect(array == bytes)
    #expect(copy == [0, 0, 0])
  }
}
