import LarkspurIO
import LarkspurTransport
import Testing

@Suite struct LoopGroupTests {
  @Test func loopsAreSpread() throws {
    let group = LoopGroup(count: 2)
    let first = try group.lease()
    let second = try group.lease()
    #expect(first.loop !== second.loop)
    let third = try group.lease()
    #expect(third.loop === first.loop || third.loop === second.loop)
  }

  /// A loop whose lease has been released is the next one to be leased.
  @Test func aLoopThatIsLetGoOfIsTakenNext() throws {
    let group = LoopGroup(count: 3)
    let kept = [try group.lease(), try group.lease()]
    var third: LoopGroup.Lease? = try group.lease()
    let loop = try #require(third).loop
    third = nil
    let next = try group.lease()
    #expect(next.loop === loop)
    #expect(kept.count == 2)
  }

  @Test func eachRunsOnItsOwnThread() async throws {
    let group = LoopGroup(count: 2)
    let (first, second) = (try group.lease(), try group.lease())
    let identities = [await identity(of: first.loop), await identity(of: second.loop)]
    #expect(Set(identities).count == 2)
    #expect(!first.loop.isCurrent)
  }

  private func identity(of loop: ClientLoop) async -> UInt64 {
    await withCheckedContinuation { continuation in
      loop.post { continuation.resume(returning: SystemThread.currentIdentity) }
    }
  }

  @Test func theSharedGroupIsSmall() {
    #expect(1...4 ~= LoopGroup.shared.count)
    #expect(LoopGroup.shared.count <= ProcessorCount.available)
    #expect(LoopGroup(count: 0).count == 1)
  }
}
