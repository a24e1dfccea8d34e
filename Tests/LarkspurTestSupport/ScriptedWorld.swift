import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Synchronization

/// A loop on a scripted kernel. The thread that made it turns it by hand; nothing here takes real time.
package final class ScriptedWorld: @unchecked Sendable {
  package let kernel = ScriptedKernel()
  package let loop: ClientLoop
  /// So many turns without rest are an endless loop.
  package static let turnsMax = 20_000

  package init() throws(Errno) {
    loop = try ClientLoop(withoutThreadOn: kernel)
  }

  /// Starts a task on the loop. It runs when the loop turns.
  package func start<T: Sendable>(_ operation: @escaping @Sendable () async throws -> T) -> Running<T> {
    let running = Running<T>()
    running.task = Task(executorPreference: loop) { @concurrent in
      do {
        running.result = .success(try await operation())
      } catch {
        running.result = .failure(error)
      }
    }
    return running
  }

  /// Turns until the loop would sleep. False: it does not come to rest.
  @discardableResult
  package func settle() -> Bool {
    for _ in 0..<Self.turnsMax {
      loop.tick()
      if kernel.isAtRest { return true }
    }
    return false
  }

  package func turn(_ count: Int = 1) {
    for _ in 0..<count { loop.tick(mayWait: false) }
  }

  package func advance(by duration: Duration) {
    kernel.advance(by: duration)
    settle()
  }

  /// Starts a task, and turns until it is over or can do nothing but wait.
  package func run<T: Sendable>(_ operation: @escaping @Sendable () async throws -> T) -> Running<T> {
    let running = start(operation)
    settle()
    return running
  }

  /// What is wrong after everybody has let go: a socket or a slot that was kept, a call that was an offence.
  package var leftovers: [String] {
    var found = kernel.offences
    if kernel.openSockets > 0 { found.append("\(kernel.openSockets) sockets are open") }
    if loop.slotsInUse > 0 { found.append("\(loop.slotsInUse) slots are in use") }
    return found
  }
}

/// A task on a scripted loop, and its outcome, which is nil while the task runs.
package final class Running<T: Sendable>: @unchecked Sendable {
  fileprivate(set) var task: Task<Void, Never>?
  package fileprivate(set) var result: Result<T, any Error>?

  package var isOver: Bool { result != nil }
  package var value: T? { if case .success(let value)? = result { value } else { nil } }
  package var error: (any Error)? { if case .failure(let error)? = result { error } else { nil } }
  package var transportError: TransportError? { error as? TransportError }
  package func cancel() { task?.cancel() }
}

/// What a loop's tasks hand to the thread that turns the loop. They are one thread.
package final class Shared<T>: @unchecked Sendable {
  package var value: T
  package init(_ value: T) { self.value = value }
}

/// A request head that cannot be refused.
package func request(_ method: String = "GET", _ target: String = "/", body: Int? = nil, upgrade: Bool = false)
  -> RequestHead
{
  do {
    var writer = try RequestWriter(method: method, target: target, host: "a.example")
    if upgrade {
      try writer.field("Connection", "upgrade")
      try writer.field("Upgrade", "websocket")
    }
    return writer.finish(body: body.map { .length(UInt($0)) } ?? .none)
  } catch {
    preconditionFailure("\(error)")
  }
}
