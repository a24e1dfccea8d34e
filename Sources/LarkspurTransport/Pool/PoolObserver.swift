import LarkspurBytes
import LarkspurHTTP

/// The observer of a pool's connections: of each event from the look-up of the host's name to the end of the connection.
public struct PoolObserver: Sendable {
  /// Maximum number of bytes of each request's and of each response's body that the observer gets. 0 for none.
  public var bodyBytesMax: Int
  /// Called on the loop for each event, soon after it. Must not block.
  ///
  /// - Parameters:
  ///   - connection: The number of the connection in its pool, counted from 1.
  ///   - task: The `RequestSlot.task` that the connection is opened for, or whose request it serves. `nil` if there is none.
  public var observe: @Sendable (ConnectionEvent, Deadline, _ connection: UInt64, _ task: Int?) -> Void

  public init(
    bodyBytesMax: Int = 0, _ observe: @escaping @Sendable (ConnectionEvent, Deadline, UInt64, Int?) -> Void
  ) {
    self.bodyBytesMax = bodyBytesMax
    self.observe = observe
  }

  func observer(of record: DialRecord?, for task: Int?) -> Connection.Observer {
    let (observe, number) = (observe, record?.number ?? 0)
    return { observe($0, $1, number, task) }
  }
}

extension Pool {
  /// Sets the observer of a connection between two requests.
  func observe(_ connection: Connection) {
    connection.observe(by: options.observer?.observer(of: connection.dialRecord, for: nil))
  }

  /// Sets the observer of a connection for a request.
  ///
  /// - Parameter own: The request's own observer, which gets each event after the pool's.
  func observe(_ connection: Connection, for slot: RequestSlot, _ own: Connection.Observer?) {
    guard let shared = options.observer else { return connection.observe(by: own) }
    let first = shared.observer(of: connection.dialRecord, for: slot.task)
    let both: Connection.Observer = { event, time in
      first(event, time)
      own?(event, time)
    }
    connection.observe(by: own == nil ? first : both, bodyBytesMax: shared.bodyBytesMax)
  }

  /// Returns the task of the request that has waited longest for a connection to the endpoint. Called when a connection is
  /// dialled, if there is an observer.
  func taskAwaitingDial(of endpoint: Endpoint) -> Int? {
    guard let id = endpoint.id else { return nil }
    let pending = loopBound.state.pendingRequests
    let waiting = pending.indices.filter { index in
      guard case .waiting = pending[index].state, let requestID = pending[index].id, !pending[index].hasDial else {
        return false
      }
      return loopBound.state.decide { machine, _ in machine.endpoint(awaitedBy: requestID) } == id
    }
    guard let first = waiting.min(by: { pending[$0].sequenceNumber < pending[$1].sequenceNumber }) else { return nil }
    loopBound.state.pendingRequests[first].hasDial = true
    return pending[first].task
  }
}
