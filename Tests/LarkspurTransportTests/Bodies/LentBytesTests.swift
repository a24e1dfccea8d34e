import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Request bodies that stay in their owner's memory.
@Suite struct LentBytesTests {
  let world: ScriptedWorld
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  @Test(arguments: [1, 65_536, 65_537, 300_000]) func allBytesInOrder(count: Int) {
    let (head, bytes) = (request("POST", body: count), pattern(count))
    let ranges = Shared<[Range<Int>]>([])
    let running = world.exchange(
      head,
      .lent(count: count) { range in
        ranges.value.append(range)
        return Array(bytes[range])
      })
    world.settle()
    #expect(peer.received == head.bytes + bytes)
    #expect(ranges.value.first?.lowerBound == 0 && ranges.value.last?.upperBound == count)
    #expect(zip(ranges.value, ranges.value.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
    peer.send(helloResponse)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  /// If the server does not read, no more than a piece is copied.
  @Test func aSlowServer() {
    let copied = Shared(0)
    peer.setSendRoom(0)
    let running = world.exchange(
      request("POST", body: 10_000_000),
      .lent(count: 10_000_000) { range in
        copied.value += range.count
        return [UInt8](repeating: 1, count: range.count)
      })
    world.settle()
    #expect(copied.value <= 65_536)
    peer.setSendRoom(.max)
    world.settle()
    peer.send(helloResponse)
    world.settle()
    #expect(running.value?.status == 200 && copied.value == 10_000_000)
    #expect(world.leftovers == [])
  }

  @Test func aHeadThatAnnouncesSomethingElse() {
    for (head, count) in [(request("POST", body: 9), 10), (chunkedRequest(), 10), (request(), 1)] {
      let running = world.exchange(head, .lent(count: count) { [UInt8](repeating: 0, count: $0.count) })
      world.settle()
      #expect(running.transportError == .localMisuse(.bodyLengthWrong))
    }
    #expect(world.leftovers == [])
  }
}
