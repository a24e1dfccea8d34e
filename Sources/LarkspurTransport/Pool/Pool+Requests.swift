import LarkspurBytes
import LarkspurHTTP

/// Sends requests over a pool's connections. A request that may be repeated is sent again if its connection turns out to
/// be dead.
extension Pool {
  /// Sends a request, and returns its exchange when the response's head is there. If `send` has begun to send the
  /// request, this continues it.
  ///
  /// The connection serves other requests once the returned value is released. If the response has not been read to its
  /// end by then, the connection is closed.
  ///
  /// A reused connection may be dead. If no byte of the response has arrived, a repeatable request is sent again (RFC
  /// 9110 9.2.2, RFC 9112 9.3.1): over a new connection if it was alone on the dead one; otherwise alone first, and
  /// over a new connection if that fails, too. Each try adds its metrics to the slot if the slot collects them.
  ///
  /// - Parameter slot: Can cancel the request. It holds one request at a time.
  public func start(
    _ request: PoolRequest, with endpoint: Endpoint, in slot: RequestSlot
  ) async throws(TransportError) -> RunningExchange {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    if !slot.isInFlight {
      if slot.isCancelled { throw .cancelled }
      guard slot.start(at: loop.now) else { throw .localMisuse(.slotBusy) }
    }
    do throws(TransportError) {
      if options.rates.requestsPerSecondPerHost != nil, !slot.isInFlight {
        try await waitForRate(of: endpoint, in: slot, until: deadline(of: request, in: slot))
      }
      return try await run(request, with: endpoint, in: slot)
    } catch {
      slot.end()
      throw slot.isCancelled ? .cancelled : error
    }
  }

  /// The progress of `send`.
  public enum Sending {
    /// The request has been sent. `RequestSlot.answer(for:)` continues it.
    case sent
    /// The callback runs when another call may succeed.
    case queued
    /// The request needs other waits. `start` continues it.
    case needsTask
  }

  /// Sends a request for a callback: over a free connection, or over the connection that its wait in the queue brings.
  /// `start` can continue it at any time, and `RequestSlot.withdraw` ends it.
  public func send(
    _ request: PoolRequest, with endpoint: Endpoint, in slot: RequestSlot, for callback: any LoopCallback
  ) -> Sending {
    // The server's consent to a body may take long to come, and a long body long to leave.
    guard loop.isCurrent, !slot.isCancelled, !slot.isSuspended, request.body.isLittle,
      !request.head.context.expectsContinue
    else { return .needsTask }
    let demand = demand(of: request)
    if !slot.isInFlight {
      guard !demand.isPipelinable, options.rates.requestsPerSecondPerHost == nil, slot.start(at: loop.now) else {
        return .needsTask
      }
      if let (id, sequenceNumber) = take(endpoint, demand) {
        guard waitsForProof(request, of: id) else {
          send(request, over: id, demand, sequenceNumber, in: slot)
          return .sent
        }
        giveBack(id)
        slot.end()
        return .needsTask
      }
      // A task watches the deadline.
      guard deadline(of: request, in: slot) == .never else {
        slot.end()
        return .needsTask
      }
      slot.state = .subscribed(enqueue(endpoint, demand, in: slot))
    }
    guard case .subscribed(let index) = slot.state else { return .needsTask }
    switch wait(index, for: callback) {
    case .waiting: return .queued
    case .running(let id) where !waitsForProof(request, of: id):
      send(request, over: id, demand, leaveQueue(index, in: slot).sequenceNumber, in: slot)
      return .sent
    case .running, .failed, .free: return .needsTask
    }
  }

  /// Sends a request over the connection that has been assigned to it, for a callback.
  private func send(
    _ request: PoolRequest, over id: PoolMachine.ConnectionID, _ demand: PoolMachine.Demand, _ sequenceNumber: UInt64,
    in slot: RequestSlot
  ) {
    slot.hasSent(
      send(
        request, over: id, demand, sequenceNumber: sequenceNumber, deadline: deadline(of: request, in: slot), in: slot))
  }

  @inline(__always)
  private func run(
    _ request: PoolRequest, with endpoint: Endpoint, in slot: RequestSlot
  ) async throws(TransportError) -> RunningExchange {
    let deadline = deadline(of: request, in: slot)
    var demand = demand(of: request)
    var next = slot.isSent ? slot.takeSent() : nil
    while true {
      let present: InFlightRequest
      if let inFlight = next.take() {
        present = inFlight
      } else {
        let (id, sequenceNumber) =
          if !slot.isInFlight, let free = take(endpoint, demand) {
            free
          } else {
            try await wait(for: endpoint, demand, in: slot, deadline: deadline)
          }
        if waitsForProof(request, of: id) { try await waitForProof(of: id, in: slot, deadline: deadline) }
        if slot.isSuspended {
          // Other requests may need the connection. The request keeps its position among the waiting ones.
          giveBack(id)
          demand.sequenceNumber = sequenceNumber
          await slot.whileSuspended()
          guard !slot.isCancelled else { throw .cancelled }
          continue
        }
        present = send(request, over: id, demand, sequenceNumber: sequenceNumber, deadline: deadline, in: slot)
        slot.runs(present)
      }
      do throws(TransportError) {
        return try await answer(to: present, of: request, deadline: deadline, in: slot)
      } catch {
        let mayRepeat = present.mayBeRepeated(after: error.endOfTry)
        if let connection = present.connection {
          slot.failedPeer = connection.dialRecord?.peer
          ended(connection, present.id, present.number, in: slot)
        }
        guard !slot.isCancelled, mayRepeat else { throw error }
      }
      // A request that was lost behind another request is sent alone next. If it fails again, it gets a new connection.
      demand.needsFresh = present.isAlone
      demand.isPipelinable = false
      demand.sequenceNumber = present.sequenceNumber
    }
  }

  private func deadline(of request: PoolRequest, in slot: RequestSlot) -> Deadline {
    request.timeouts?.end(from: slot.requested, within: request.deadline) ?? request.deadline
  }

  private func demand(of request: PoolRequest) -> PoolMachine.Demand {
    var demand = PoolMachine.Demand()
    demand.priority = request.priority
    demand.isPipelinable = options.limits.pipelineDepth > 1 && options.observer == nil && request.isPipelinable
    return demand
  }

  /// Sends a request over the connection that has been assigned to it.
  @inline(__always)
  private func send(
    _ request: PoolRequest, over id: PoolMachine.ConnectionID, _ demand: PoolMachine.Demand, sequenceNumber: UInt64,
    deadline: Deadline, in slot: RequestSlot
  ) -> InFlightRequest {
    // The connection may have been closed since it was assigned.
    let connection = openConnection(id)
    var inFlight = InFlightRequest(
      id: id, sequenceNumber: sequenceNumber, connection: connection,
      attempt: RequestTry(
        isOverFresh: demand.needsFresh, isBodyRepeatable: request.body.isRepeatable,
        isIdempotent: request.head.isIdempotent))
    guard let connection else { return inFlight }
    inFlight.isAlone = connection.isIdle
    if request.observer != nil || options.observer != nil { observe(connection, for: slot, request.observer) }
    do throws(TransportError) {
      let number = try connection.start(request, deadline: deadline, isPipelined: demand.isPipelinable)
      inFlight.number = number
    } catch {
      inFlight.failure = error
    }
    return inFlight
  }

  @inline(never)
  private func answer(
    to inFlight: InFlightRequest, of request: PoolRequest, deadline: Deadline, in slot: RequestSlot
  ) async throws(TransportError) -> RunningExchange {
    if let failure = inFlight.failure { throw failure }
    guard let connection = inFlight.connection, let number = inFlight.number else { throw .connectionClosed }
    if !inFlight.isAlone {
      try await connection.waitForTurn(of: number, deadline: deadline)
      slot.leftQueue()
    }
    let exchange = try await connection.head(of: number)
    if connection.hasRefusedAsLate, inFlight.mayBeRepeated(after: .refusedAsLate) { throw .connectionClosed }
    if slot.failedPeer != nil { slot.failedPeer = nil }
    return RunningExchange(exchange, on: inFlight.id, in: slot)
  }
}
