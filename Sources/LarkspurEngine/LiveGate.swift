import LarkspurTransport
import Synchronization

/// The way of a task's operations to its connection, from any thread.
///
/// ```
///  waiting --open--> open
///     '-----close---> closed
/// ```
///
/// Operations wait in their order until there is a connection, and fail if there will be none. A connection answers
/// operations behind its end as well: it may still have something to deliver.
public final class LiveGate: Sendable {
  private enum State: Sendable {
    case waiting([LiveOperation])
    case open(any LiveConnection)
    case closed(any Error)
  }

  private let state = Mutex(State.waiting([]))

  package init() {}

  /// The connection, while there is one.
  package var connection: (any LiveConnection)? {
    state.withLock { state in if case .open(let connection) = state { connection } else { nil } }
  }

  /// Passes an operation on.
  package func submit(_ operation: LiveOperation) {
    let reached = state.withLock { state -> State in
      if case .waiting(var operations) = state {
        operations.append(operation)
        state = .waiting(operations)
      }
      return state
    }
    switch reached {
    case .waiting:
      // The cancellation may have arrived before.
      if operation.isCancelled { cancel(operation) }
    case .open(let connection): connection.loop.submit(operation, inline: true)
    case .closed(let error): operation.refuse(error)
    }
  }

  /// Ends the wait for an operation.
  package func cancel(_ operation: LiveOperation) {
    let (isRemoved, connection) = state.withLock { state -> (Bool, (any LiveConnection)?) in
      switch state {
      case .waiting(var operations):
        guard let index = operations.firstIndex(where: { $0 === operation }) else { return (false, nil) }
        operations.remove(at: index)
        state = .waiting(operations)
        return (true, nil)
      case .open(let connection): return (false, connection)
      case .closed: return (false, nil)
      }
    }
    if isRemoved { operation.refuse(CancellationError()) }
    connection?.loop.post { operation.waitEnded() }
  }

  /// Starts the operations that wait. Called on the loop.
  package func open(for connection: any LiveConnection) {
    let operations = state.withLock { state -> [LiveOperation] in
      guard case .waiting(let operations) = state else { return [] }
      state = .open(connection)
      return operations
    }
    for operation in operations { operation.perform() }
  }

  /// Fails the operations that wait for a connection, and all later ones. No effect once there is a connection.
  package func close(_ error: any Error) {
    let operations = state.withLock { state -> [LiveOperation] in
      guard case .waiting(let operations) = state else { return [] }
      state = .closed(error)
      return operations
    }
    for operation in operations { operation.refuse(error) }
  }
}
