import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Synchronization

/// A loop on a scripted kernel. The thread that has created the loop runs its ticks by hand; nothing takes real time.
package final class ScriptedWorld: @unchecked Sendable {
  package let kernel = ScriptedKernel()
  package let loop: ClientLoop
  /// Number of ticks without rest that counts as an endless loop.
  package static let turnsMax = 20_000

  package init() throws(Errno) {
    loop = try ClientLoop(withoutThreadOn: kernel)
  }

  /// Starts a task on the loop. The task runs in the loop's next tick.
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

  /// Runs ticks until the loop would sleep.
  ///
  /// - Returns: Whether the loop has come to rest.
  @discardableResult
  package func settle() -> Bool {
    for _ in 0..<Self.turnsMax {
      loop.tick()
      if kernel.isAtRest { return true }
    }
    return false
  }

  package func tick(_ count: Int = 1) {
    for _ in 0..<count { loop.tick(mayWait: false) }
  }

  package func advance(by duration: Duration) {
    kernel.advance(by: duration)
    settle()
  }

  /// Starts a task, and runs ticks until the task is over or can only wait.
  package func run<T: Sendable>(_ operation: @escaping @Sendable () async throws -> T) -> Running<T> {
    let running = start(operation)
    settle()
    return running
  }

  /// The leftovers after all users are gone: open sockets, slots in use, and calls that were offences.
  package var leftovers: [String] {
    var found = kernel.offences
    if kernel.openSockets > 0 { found.append("\(kernel.openSockets) sockets are open") }
    if loop.slotsInUse > 0 { found.append("\(loop.slotsInUse) slots are in use") }
    return found
  }
}

/// A task on a scripted loop, and its result, which is `nil` while the task runs.
package final class Running<T: Sendable>: @unchecked Sendable {
  fileprivate(set) var task: Task<Void, Never>?
  package fileprivate(set) var result: Result<T, any Error>?

  package var isOver: Bool { result != nil }
  package var value: T? { if case .success(let value)? = result { value } else { nil } }
  package var error: (any Error)? { if case .failure(let error)? = result { error } else { nil } }
  package var transportError: TransportError? { error as? TransportError }
  package func cancel() { task?.cancel() }
}

/// A value shared between a loop's tasks and the thread that runs the loop's ticks, which are one thread.
package final class Shared<T>: @unchecked Sendable {
  package var value: T
  package init(_ value: T) { self.value = value }
}

/// Returns a valid request head.
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
