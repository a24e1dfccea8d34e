import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import TestKit
import Testing

/// Threads that look names up.
@Suite(.timeLimit(.minutes(1))) struct SystemNamesTests {
  static let address = SocketAddress.ipv4(0x0a00_0001, port: 80)

  @Test func theSystemsOwnAnswer() throws {
    let addresses = try NameLookup.addresses(of: "localhost", port: 7)
    #expect(addresses.contains(.loopback(port: 7)) || addresses.contains(.ipv6(high: 0, low: 1, scope: 0, port: 7)))
    // A label of 64 bytes, which is too long for a name server to be asked.
    #expect(throws: NameLookup.Failure.self) {
      try NameLookup.addresses(of: String(repeating: "x", count: 64) + ".invalid", port: 7)
    }
  }

  /// Name servers that do not answer block threads, but no caller beyond its deadline.
  @Test func aResolverThatHangs() async throws {
    let door = Latch()
    let begun = Atomic(0)
    let system = SystemNames(idleLifetime: .zero) { _ in
      begun.add(1, ordering: .relaxed)
      door.wait()
      return .found([Self.address])
    }
    let world = try ScriptedWorld()
    let resolver = Resolver(source: system, kernel: world.kernel)
    let ask = { (number: Int) in
      world.run {
        let deadline = world.loop.now.advanced(by: .seconds(5))
        return try await resolver.addresses(of: "n\(number)x", port: 80, deadline: deadline, on: world.loop)
      }
    }
    let waiting = (1...20).map(ask)
    #expect(system.threadCount == 4)
    world.advance(by: .seconds(5))
    #expect(waiting.allSatisfy { $0.transportError == .timedOut(.resolving) })
    // A caller with one of these names joins the running lookup; a caller with another name gets a new thread.
    let threads = system.threadCount
    #expect(ask(1).isOver == false)
    #expect(system.threadCount == threads)
    #expect(ask(21).isOver == false)
    #expect(system.threadCount == threads + 1)
    door.open()
    // The threads end when there is nothing left to do.
    await Wait.until("the threads have ended") { system.threadCount == 0 }
    // Their results are in the cache.
    world.settle()
    #expect((1...4).map(ask).allSatisfy { $0.value == [Self.address] })
    #expect(begun.load(ordering: .relaxed) == threads + 1)
    #expect(world.leftovers == [])
  }

  /// A thread that has answered takes the next question.
  @Test func threadsAreUsedAgain() async throws {
    let threads = Mutex<Set<UInt64>>([])
    let system = SystemNames(idleLifetime: .seconds(600)) { _ in
      threads.withLock { _ = $0.insert(SystemThread.currentIdentity) }
      return .found([Self.address])
    }
    var limits = NameLimits()
    limits.lookUpsMax = 1
    let resolver = Resolver(source: system, limits: limits)
    let loop = try ClientLoop()
    try await loop.run {
      for number in 1...50 {
        let addresses = try await resolver.addresses(of: "n\(number)x", port: 80, deadline: .never, on: loop)
        #expect(addresses == [Self.address])
      }
    }
    loop.stop()
    #expect(threads.withLock { $0.count } == 1)
    #expect(system.threadCount == 1)
  }

  /// Two loops and callers that go away at any moment: each caller gets its own name's answer, or is cancelled.
  @Test func manyAtOnce() async throws {
    let running = Atomic(0)
    let system = SystemNames(idleLifetime: .zero) { name in
      #expect(running.add(1, ordering: .relaxed).newValue <= 4 + 28)
      defer { running.subtract(1, ordering: .relaxed) }
      let number = name.text.utf8.reduce(UInt32(0)) { $0 &* 31 &+ UInt32($1) }
      return number % 3 == 0 ? .failed(reason: name.text) : .found([.ipv4(number, port: 0)])
    }
    var limits = NameLimits()
    limits.entriesMax = 5
    let resolver = Resolver(source: system, limits: limits)
    let loops = [try ClientLoop(), try ClientLoop()]
    var random = SeededGenerator(for: "SystemNamesTests")
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<2000 {
        let name = "n\(random.next() % 20)x"
        let loop = loops[number % 2]
        let task = Task(executorPreference: loop) { @concurrent in
          do throws(TransportError) {
            let addresses = try await resolver.addresses(of: name, port: 9, deadline: .never, on: loop)
            let expected = name.utf8.reduce(UInt32(0)) { $0 &* 31 &+ UInt32($1) }
            #expect(addresses == [.ipv4(expected, port: 9)])
            #expect(system.threadCount <= 4 + 28)
          } catch {
            #expect(error == .cancelled || error == .resolutionFailed(host: name, reason: name))
          }
        }
        if random.next() % 3 == 0 { task.cancel() }
        group.addTask { await task.value }
      }
    }
    for loop in loops {
      #expect(await loop.run { loop.slotsInUse } == 0)
      loop.stop()
    }
    await Wait.until("the threads have ended") { system.threadCount == 0 }
  }
}
