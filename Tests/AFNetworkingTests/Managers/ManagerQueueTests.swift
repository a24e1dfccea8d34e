import Dispatch
import LarkspurTestServer
import Synchronization
import Testing

@testable import AFNetworking

/// Tests the queues on which completion handlers run and responses are serialized.
@Suite struct ManagerQueueTests {
  let fixture: ManagerFixture
  var manager: AFHTTPSessionManager { fixture.manager }

  init() throws { fixture = try ManagerFixture() }

  private static let key = DispatchSpecificKey<String>()

  @Test func handlersAreCalledOnTheMainQueue() async throws {
    let request = try fixture.request("/get")
    let outcome = await outcome { manager.dataTask(with: request, completionHandler: $0).resume() }
    #expect(outcome.isOnMain)
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .close])
    let failed = await Self.failure(of: manager)
    signal.fire()
    #expect(failed.isOnMain && failed.error?.code == NSURLErrorCancelled)
  }

  private static func failure(of manager: AFHTTPSessionManager) async -> BlockResult {
    await AFNetworkingTests.outcome { success, failure in
      manager.get("slow", parameters: nil, success: success, failure: failure)?.cancel()
    }
  }

  @Test func orOnAnotherOne() async throws {
    let queue = DispatchQueue(label: "completion")
    queue.setSpecific(key: Self.key, value: "completion")
    manager.completionQueue = queue
    #expect(manager.completionQueue === queue)
    let request = try fixture.request("/get")
    let name = await withCheckedContinuation { continuation in
      manager.dataTask(with: request) { _, _, _ in
        continuation.resume(returning: DispatchQueue.getSpecific(key: Self.key))
      }.resume()
    }
    #expect(name == "completion")
  }

  /// The completion group is entered before a completion handler runs and left after it has returned.
  @Test func theCompletionGroupHoldsTheHandlers() async throws {
    let (group, journal) = (DispatchGroup(), Journal())
    manager.completionQueue = DispatchQueue(label: "completion")
    manager.completionGroup = group
    #expect(manager.completionGroup === group)
    let request = try fixture.request("/get")
    manager.dataTask(with: request) { _, _, _ in
      journal.note(group.wait(timeout: .now()) == .timedOut ? "held" : "free")
      group.notify(queue: .global()) { journal.note("group") }
      journal.note("handler")
    }.resume()
    await journal.wait(for: "group")
    #expect(journal.lines == ["held", "handler", "group"])
  }

  /// A serializer that blocks its first response until it gets a second one.
  private final class PairSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let count = Mutex(0)
    private let second = DispatchSemaphore(value: 0)

    override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number == 1 { second.wait() } else { second.signal() }
      return number
    }
  }

  /// Responses are serialized concurrently, so a slow serializer delays neither the session's queue nor other
  /// responses.
  @Test func responsesAreSerializedAtTheSameTime() async throws {
    manager.responseSerializer = PairSerializer()
    async let first = outcome { manager.get("slow", parameters: nil, success: $0, failure: $1) }
    async let second = outcome { manager.get("slow", parameters: nil, success: $0, failure: $1) }
    let numbers = await [first.object as? Int, second.object as? Int]
    #expect(Set(numbers) == [1, 2])
  }

  @Test func documentsOfAnyLength() async throws {
    for count in [4, 2048, 1 << 20] {
      let text = String(repeating: "a", count: count - 2)
      fixture.server.route("GET", "/text") { _ in
        .init(status: 200, fields: ["Content-Type": "application/json"], body: .text("[\"\(text.dropLast(2))\"]"))
      }
      let list = try await manager.get("text").value as? [String]
      #expect(list?.first?.utf8.count == count - 4)
    }
  }

  /// The session's delegate queue is serial.
  @Test func theOperationQueueIsSerial() async throws {
    #expect(manager.operationQueue.maxConcurrentOperationCount == 1)
    #expect(manager.operationQueue === manager.session.delegateQueue)
    let journal = Journal()
    let queue = manager.operationQueue
    queue.isSuspended = true
    queue.addOperation { journal.note("operation") }
    queue.isSuspended = false
    await journal.wait(for: "operation")
  }

  @Test func identifiersAreUnique() async throws {
    let request = try fixture.request("/get")
    let identifiers = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<100 {
        group.addTask { [manager] in
          let task = manager.dataTask(with: request, completionHandler: nil)
          task.cancel()
          return task.taskIdentifier
        }
      }
      return await group.reduce(into: Set<Int>()) { $0.insert($1) }
    }
    #expect(identifiers.count == 100)
  }
}
