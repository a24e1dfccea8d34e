import LarkspurBytes
import LarkspurEngine
import Synchronization
import TestKit
import Testing

/// The limit of all downloads' requests for each host.
@Suite(.timeLimit(.minutes(1))) struct DownloadHostGateTests {
  private final class Order: Sendable {
    let numbers = Mutex<[Int]>([])
  }

  @Test func turnsComeInOrder() async throws {
    let gate = DownloadHostGate(requestsMax: 1)
    let (isIn, mayLeave) = (Event(), Event())
    let order = Order()
    let first = Task {
      await gate.run(at: "a") {
        isIn.fire(); try? await mayLeave.wait()
      }
    }
    try await isIn.wait()
    var others: [Task<Void, Never>] = []
    for number in 1...3 {
      others.append(Task { await gate.run(at: "a") { order.numbers.withLock { $0.append(number) } } })
      await Wait.until("the request waits") { gate.waiterCount(at: "a") == number }
    }
    // The second one leaves before its turn, and another host has turns of its own.
    others[1].cancel()
    await others[1].value
    await gate.run(at: "b") { order.numbers.withLock { $0.append(0) } }
    mayLeave.fire()
    for task in others + [first] { await task.value }
    #expect(order.numbers.withLock(\.self) == [0, 1, 3])
    await gate.run(at: "a") { order.numbers.withLock { $0.append(4) } }
    #expect(order.numbers.withLock { $0.last } == 4)
  }

  @Test func aWaiterThatIsCancelled() async throws {
    let gate = DownloadHostGate(requestsMax: 1)
    #expect(await gate.enter(""))
    let waiter = OneShot<Void>()
    let second = Task { await gate.enter("", waiter) }
    await Wait.until("the task waits") { gate.waiterCount(at: "") == 1 }
    waiter.cancel()
    #expect(await second.value == false && gate.waiterCount(at: "") == 0)
    gate.leave("")
    #expect(await gate.enter(""))
  }

  @Test(arguments: [
    ("http://Example.org/a:1@b", "example.org"), ("https://user:word@a.example:8443?x", "a.example:8443"),
    ("http://[::1]:80#f", "[::1]:80"),
  ])
  func hosts(url: String, host: String) { #expect(DownloadHostGate.host(of: url) == host) }
}
