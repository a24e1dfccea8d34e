import LarkspurBytes
import LarkspurHTTP
import Testing

/// The pool's decisions one after another, which read like a transcript.
@Suite struct PoolMachineTests {
  /// A machine, one endpoint, and the machine's actions since the last `take()`.
  struct Desk {
    var machine: PoolMachine
    var endpoint: PoolMachine.EndpointID
    var now = Deadline(nanoseconds: 0)
    var actions: PoolMachine.Actions = []

    init(_ change: (inout PoolLimits) -> Void = { _ in }) {
      var limits = PoolLimits()
      change(&limits)
      machine = PoolMachine(limits: limits)
      endpoint = machine.addEndpoint()
    }

    mutating func request(
      _ change: (inout PoolMachine.Demand) -> Void = { _ in }, at other: PoolMachine.EndpointID? = nil
    ) throws -> PoolMachine.RequestID {
      var demand = PoolMachine.Demand()
      change(&demand)
      let requestID = machine.requested(other ?? endpoint, demand, now: now, into: &actions)
      return try #require(requestID)
    }

    mutating func take() -> PoolMachine.Actions {
      defer { actions = [] }
      return actions
    }

    /// Takes the one action, which has to be a dial, and returns its connection.
    mutating func takeDial() throws -> PoolMachine.ConnectionID {
      let actions = take()
      try #require(actions.count == 1)
      guard case .dial(let id, _) = actions[0] else { throw Unexpected(actions: actions) }
      return id
    }

    mutating func opened(_ id: PoolMachine.ConnectionID) { machine.dialSucceeded(id, now: now, into: &actions) }

    mutating func failed(_ id: PoolMachine.ConnectionID, isOurs: Bool = false) {
      machine.dialFailed(id, isOurs: isOurs, now: now, into: &actions)
    }

    mutating func ended(
      _ id: PoolMachine.ConnectionID, _ isReusable: Bool = true, idle: Duration? = nil, left: Int? = nil
    ) {
      machine.exchangeEnded(
        id, PoolMachine.ExchangeOutcome(isReusable: isReusable, idle: idle, requestsLeft: left), now: now,
        into: &actions)
    }

    mutating func returned(_ id: PoolMachine.ConnectionID, isOpen: Bool = true) {
      machine.connectionReturned(id, isOpen: isOpen, now: now, into: &actions)
    }

    mutating func pass(_ duration: Duration) {
      now = now.advanced(by: duration)
      machine.timerFired(now: now, into: &actions)
    }

    /// Returns a connection that has served one request and is idle.
    mutating func idleConnection() throws -> PoolMachine.ConnectionID {
      _ = try request()
      let id = try takeDial()
      opened(id)
      ended(id)
      _ = take()
      return id
    }
  }

  struct Unexpected: Error {
    var actions: PoolMachine.Actions
  }

  @Test func aFreeConnectionIsTakenWithoutARequestID() throws {
    var desk = Desk()
    #expect(desk.machine.took(desk.endpoint, isPipelinable: false, now: desk.now, into: &desk.actions) == nil)
    let connection = try desk.idleConnection()
    let taken = desk.machine.took(desk.endpoint, isPipelinable: false, now: desk.now, into: &desk.actions)
    #expect(taken?.id == connection)
    #expect(desk.machine.isRunning(connection) && desk.take() == [])
    #expect(desk.machine.took(desk.endpoint, isPipelinable: false, now: desk.now, into: &desk.actions) == nil)
    // The connection was dead. Its request asks again, and keeps its position before the requests that came after it.
    let later = try desk.request()
    let dialed = try desk.takeDial()
    let again = try desk.request { $0.sequenceNumber = taken?.sequenceNumber }
    desk.machine.connectionClosed(connection, now: desk.now, into: &desk.actions)
    _ = desk.take()
    desk.opened(dialed)
    #expect(desk.take().first == .run(again, on: dialed))
    desk.ended(dialed)
    #expect(desk.take() == [.run(later, on: dialed)])
  }

  @Test func whatHasBeenIdleForTooLongIsNotTaken() throws {
    var desk = Desk { $0.idleMax = .seconds(5) }
    let connection = try desk.idleConnection()
    desk.now = desk.now.advanced(by: .seconds(5))
    #expect(desk.machine.took(desk.endpoint, isPipelinable: false, now: desk.now, into: &desk.actions) == nil)
    #expect(desk.take() == [.close(connection)])
  }

  @Test func nothingIsTakenOfAPoolThatIsShutDown() throws {
    var desk = Desk()
    _ = try desk.idleConnection()
    desk.machine.shutDown(into: &desk.actions)
    _ = desk.take()
    #expect(desk.machine.took(desk.endpoint, isPipelinable: false, now: desk.now, into: &desk.actions) == nil)
    #expect(desk.take() == [])
  }

  @Test func aRequestOpensAConnectionAndTheNextOneUsesItAgain() throws {
    var desk = Desk()
    let first = try desk.request()
    let connection = try desk.takeDial()
    desk.opened(connection)
    #expect(desk.take() == [.run(first, on: connection)])
    desk.ended(connection)
    #expect(desk.take() == [])
    let second = try desk.request()
    #expect(desk.take() == [.run(second, on: connection)])
  }

  @Test func theConnectionUsedLastIsUsedAgain() throws {
    var desk = Desk()
    _ = try desk.request()
    _ = try desk.request()
    let dials = desk.take().compactMap(\.dialed)
    for id in dials { desk.opened(id) }
    desk.ended(dials[1])
    desk.ended(dials[0])
    _ = desk.take()
    let requestID = try desk.request()
    #expect(desk.take() == [.run(requestID, on: dials[0])])
  }

  @Test func limitsOfAnEndpoint() throws {
    var desk = Desk { $0.perEndpointMax = 2 }
    let requestIDs = try (0..<4).map { _ in try desk.request() }
    let dials = desk.take().compactMap(\.dialed)
    #expect(dials.count == 2)
    desk.opened(dials[0])
    desk.opened(dials[1])
    #expect(desk.take() == [.run(requestIDs[0], on: dials[0]), .run(requestIDs[1], on: dials[1])])
    desk.ended(dials[1])
    #expect(desk.take() == [.run(requestIDs[2], on: dials[1])])
    desk.ended(dials[0], false)
    // The connection that ended makes room for another dial.
    #expect(desk.actions.first == .close(dials[0]))
    #expect(desk.take().compactMap(\.dialed).count == 1)
  }

  @Test func theFirstFreeConnectionServesTheOldestRequestAndTheLateOneIsKept() throws {
    var desk = Desk()
    let busy = try desk.idleConnection()
    _ = try desk.request()
    _ = desk.take()
    let waiting = try desk.request()
    let late = try desk.takeDial()
    desk.ended(busy)
    #expect(desk.take() == [.run(waiting, on: busy)])
    desk.opened(late)
    #expect(desk.take() == [])
    #expect(desk.machine.idleCount == 1)
    let next = try desk.request()
    #expect(desk.take() == [.run(next, on: late)])
  }

  @Test func prioritiesGoFirstAndEqualsInTheirOrder() throws {
    var desk = Desk { $0.perEndpointMax = 1 }
    let low = try desk.request { $0.priority = 1 }
    let connection = try desk.takeDial()
    let first = try desk.request()
    let second = try desk.request()
    let high = try desk.request { $0.priority = 255 }
    desk.opened(connection)
    for requestID in [high, first, second, low] {
      #expect(desk.take() == [.run(requestID, on: connection)])
      desk.ended(connection)
    }
  }

  @Test func aCancelledRequestIsNotServed() throws {
    var desk = Desk { $0.perEndpointMax = 1 }
    let first = try desk.request()
    let connection = try desk.takeDial()
    let second = try desk.request()
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    desk.opened(connection)
    #expect(desk.take() == [.run(second, on: connection)])
    // The cancellation is too late: the request is running.
    desk.machine.cancelled(second, now: desk.now, into: &desk.actions)
    #expect(desk.take() == [])
  }

  @Test func cancelledRequestsDoNotFillTheQueue() throws {
    var desk = Desk { $0.perEndpointMax = 1 }
    let first = try desk.request()
    let connection = try desk.takeDial()
    for _ in 0..<10_000 {
      let requestID = try desk.request()
      desk.machine.cancelled(requestID, now: desk.now, into: &desk.actions)
    }
    #expect(desk.machine.waitingCount == 1)
    desk.opened(connection)
    #expect(desk.take() == [.run(first, on: connection)])
  }

  @Test func theLastFailureFailsAllWaitingRequests() throws {
    var desk = Desk()
    let requestIDs = try (0..<2).map { _ in try desk.request() }
    let dials = desk.take().compactMap(\.dialed)
    desk.failed(dials[0])
    #expect(desk.take() == [])
    desk.failed(dials[1])
    #expect(desk.take() == requestIDs.map { .fail($0, .dialFailed) } + [.forget(desk.endpoint)])
  }

  @Test func aRequestAfterTheFailedDialGetsAnother() throws {
    var desk = Desk { $0.perEndpointMax = 1 }
    let first = try desk.request()
    let dial = try desk.takeDial()
    let second = try desk.request()
    desk.failed(dial)
    let actions = desk.take()
    #expect(actions.first == .fail(first, .dialFailed))
    let another = try #require(actions.last?.dialed)
    desk.opened(another)
    #expect(desk.take() == [.run(second, on: another)])
  }

  /// If a server accepts some connections and refuses more, requests wait for those it has accepted.
  @Test func noRequestFailsWhileAConnectionServes() throws {
    var desk = Desk()
    let served = try desk.idleConnection()
    let first = try desk.request()
    #expect(desk.take() == [.run(first, on: served)])
    let second = try desk.request()
    desk.failed(try desk.takeDial())
    #expect(desk.take() == [])
    // The dial is retried after a pause.
    desk.pass(.milliseconds(999))
    #expect(desk.take() == [])
    desk.pass(.milliseconds(1))
    desk.failed(try desk.takeDial())
    desk.ended(served)
    #expect(desk.take() == [.run(second, on: served)])
    // When the last connection is gone, waiting requests fail with the dial.
    let third = try desk.request()
    desk.machine.connectionClosed(served, now: desk.now, into: &desk.actions)
    desk.failed(try desk.takeDial())
    #expect(desk.take() == [.fail(third, .dialFailed), .forget(desk.endpoint)])
  }

  /// A failed dial is not repeated at once while another attempt hangs; otherwise it would be repeated without pause.
  @Test(arguments: [false, true], [false, true])
  func aFailureIsNotRepeatedAtOnce(isOurs: Bool, needsFresh: Bool) throws {
    var desk = Desk { $0.totalMax = 2 }
    for _ in 0..<3 { _ = try desk.request { $0.needsFresh = needsFresh } }
    let actions = desk.take()
    guard actions.count == 2, case .dial(let failing, _) = actions[1] else { throw Unexpected(actions: actions) }
    desk.failed(failing, isOurs: isOurs)
    #expect(desk.take() == [])
    desk.pass(.milliseconds(999))
    #expect(desk.take() == [])
    desk.pass(.milliseconds(1))
    _ = try desk.takeDial()
  }

  @Test func withoutDescriptorsAnIdleConnectionGivesWay() throws {
    var desk = Desk()
    let idle = try desk.idleConnection()
    let other = desk.machine.addEndpoint()
    let requestID = try desk.request(at: other)
    desk.failed(try desk.takeDial(), isOurs: true)
    let actions = desk.take()
    #expect(actions.prefix(2) == [.close(idle), .forget(desk.endpoint)])
    let again = try #require(actions.last?.dialed)
    // No idle connection is left to close.
    desk.failed(again, isOurs: true)
    #expect(desk.take() == [.fail(requestID, .dialFailed), .forget(other)])
  }

  @Test func theTotalLimitTakesTheOldestIdleConnection() throws {
    var desk = Desk { $0.totalMax = 2 }
    let old = try desk.idleConnection()
    desk.now = desk.now.advanced(by: .seconds(1))
    let (second, third) = (desk.machine.addEndpoint(), desk.machine.addEndpoint())
    _ = try desk.request(at: second)
    desk.opened(try desk.takeDial())
    _ = desk.take()
    _ = try desk.request(at: third)
    let actions = desk.take()
    #expect(actions.prefix(2) == [.close(old), .forget(desk.endpoint)])
    #expect(actions.last?.dialed != nil)
    #expect(desk.machine.connectionCount == 2)
  }

  @Test func aRequestAtTheTotalLimitContinuesWhenThereIsRoom() throws {
    var desk = Desk { $0.totalMax = 1 }
    _ = try desk.request()
    let first = try desk.takeDial()
    desk.opened(first)
    _ = desk.take()
    let other = desk.machine.addEndpoint()
    let requestID = try desk.request(at: other)
    #expect(desk.take() == [])
    desk.ended(first)
    #expect(desk.actions.first == .close(first))
    let second = try #require(desk.take().compactMap(\.dialed).first)
    desk.opened(second)
    #expect(desk.take() == [.run(requestID, on: second)])
  }

  @Test(arguments: [(nil, 60), (.seconds(5), 5), (.seconds(600), 60)] as [(Duration?, Int)])
  func idleTime(server: Duration?, seconds: Int) throws {
    var desk = Desk()
    _ = try desk.request()
    let connection = try desk.takeDial()
    desk.opened(connection)
    desk.ended(connection, idle: server)
    _ = desk.take()
    desk.pass(.milliseconds(seconds * 1000 - 1))
    #expect(desk.take() == [])
    desk.pass(.milliseconds(1))
    #expect(desk.take() == [.close(connection), .forget(desk.endpoint)])
    #expect(desk.machine.timer == .never)
  }

  /// The timer may be late: a connection that has been idle for too long is not used.
  @Test func anExpiredConnectionIsNotUsed() throws {
    var desk = Desk()
    let old = try desk.idleConnection()
    desk.now = desk.now.advanced(by: .seconds(60))
    _ = try desk.request()
    let actions = desk.take()
    #expect(actions.first == .close(old))
    #expect(actions.last?.dialed != nil)
  }

  @Test func age() throws {
    var desk = Desk { $0.ageMax = .seconds(10) }
    let connection = try desk.idleConnection()
    desk.pass(.seconds(9))
    let requestID = try desk.request()
    #expect(desk.take() == [.run(requestID, on: connection)])
    desk.pass(.seconds(1))
    desk.ended(connection)
    #expect(desk.take() == [.close(connection), .forget(desk.endpoint)])
  }

  @Test func requestsOfOneConnection() throws {
    var desk = Desk { $0.requestsMax = 2 }
    let connection = try desk.idleConnection()
    let requestID = try desk.request()
    #expect(desk.take() == [.run(requestID, on: connection)])
    desk.ended(connection)
    #expect(desk.take() == [.close(connection), .forget(desk.endpoint)])
  }

  @Test(arguments: [0, 1]) func requestsThatTheServerAllows(left: Int) throws {
    var desk = Desk()
    _ = try desk.request()
    let connection = try desk.takeDial()
    desk.opened(connection)
    desk.ended(connection, left: left)
    #expect(desk.take().contains(.close(connection)) == (left == 0))
  }

  @Test func aDeadConnectionsRequestGetsAFreshOneInItsOldPosition() throws {
    var desk = Desk { $0.perEndpointMax = 2 }
    _ = try desk.request()
    _ = try desk.request()
    let dials = desk.take().compactMap(\.dialed)
    for id in dials { desk.opened(id) }
    for id in dials { desk.ended(id) }
    _ = desk.take()
    let requestID = try desk.request()
    #expect(desk.take() == [.run(requestID, on: dials[1])])
    desk.machine.connectionClosed(dials[1], now: desk.now, into: &desk.actions)
    // The other idle connection may be dead as well.
    let again = try desk.request {
      $0.needsFresh = true
      $0.sequenceNumber = requestID.sequenceNumber
    }
    let fresh = try desk.takeDial()
    desk.opened(fresh)
    #expect(desk.take() == [.run(again, on: fresh)])
  }

  @Test func anIdleConnectionMakesRoomForAFreshOne() throws {
    var desk = Desk { $0.perEndpointMax = 1 }
    let idle = try desk.idleConnection()
    _ = try desk.request { $0.needsFresh = true }
    let actions = desk.take()
    #expect(actions.first == .close(idle))
    #expect(actions.last?.dialed != nil)
  }

  @Test func pipelining() throws {
    var desk = Desk {
      $0.perEndpointMax = 1
      $0.pipelineDepth = 3
    }
    let requestIDs = try (0..<5).map { _ in try desk.request { $0.isPipelinable = true } }
    let connection = try desk.takeDial()
    desk.opened(connection)
    // The first response shows whether the connection is kept.
    #expect(desk.take() == [.run(requestIDs[0], on: connection)])
    desk.ended(connection)
    #expect(desk.take() == requestIDs[1...3].map { .run($0, on: connection) })
    desk.ended(connection)
    #expect(desk.take() == [.run(requestIDs[4], on: connection)])
  }

  /// A connection that a request gave back unused has answered nothing yet, so the next request goes alone, too.
  @Test func aConnectionThatIsGivenBackUnusedIsNotProven() throws {
    var desk = Desk {
      $0.perEndpointMax = 1
      $0.pipelineDepth = 3
    }
    let requestIDs = try (0..<4).map { _ in try desk.request { $0.isPipelinable = true } }
    let connection = try desk.takeDial()
    desk.opened(connection)
    #expect(desk.take() == [.run(requestIDs[0], on: connection)])
    desk.returned(connection)
    #expect(desk.take() == [.run(requestIDs[1], on: connection)])
    desk.ended(connection)
    #expect(desk.take() == requestIDs[2...3].map { .run($0, on: connection) })
    // A connection that is proven stays so.
    let last = try desk.request { $0.isPipelinable = true }
    #expect(desk.take() == [.run(last, on: connection)])
    desk.returned(connection)
    let next = try desk.request { $0.isPipelinable = true }
    #expect(desk.take() == [.run(next, on: connection)])
  }

  @Test func aConnectionThatIsGivenBackUnusedIsIdleOrClosed() throws {
    var desk = Desk()
    let connection = try desk.idleConnection()
    _ = try desk.request()
    _ = desk.take()
    desk.returned(connection)
    #expect(desk.take() == [] && desk.machine.idleCount == 1)
    // Only a running connection can be given back.
    desk.returned(connection, isOpen: false)
    #expect(desk.take() == [] && desk.machine.idleCount == 1)
    _ = try desk.request()
    _ = desk.take()
    desk.returned(connection, isOpen: false)
    #expect(desk.take() == [.close(connection), .forget(desk.endpoint)])
  }

  @Test func nothingFollowsARequestThatMustNotBeRepeated() throws {
    var desk = Desk {
      $0.perEndpointMax = 1
      $0.pipelineDepth = 3
    }
    let connection = try desk.idleConnection()
    let unsafe = try desk.request()
    #expect(desk.take() == [.run(unsafe, on: connection)])
    let next = try desk.request { $0.isPipelinable = true }
    #expect(desk.take() == [])
    desk.ended(connection)
    #expect(desk.take() == [.run(next, on: connection)])
    // A request that must not be repeated does not follow another one either.
    _ = try desk.request()
    #expect(desk.take() == [])
  }

  @Test func tooManyWait() throws {
    var desk = Desk {
      $0.perEndpointMax = 1
      $0.waitingMax = 2
    }
    _ = try desk.request()
    _ = try desk.request()
    _ = desk.take()
    let third = try desk.request()
    #expect(desk.take() == [.fail(third, .tooManyWaiting)])
  }

  @Test func shuttingDown() throws {
    var desk = Desk { $0.perEndpointMax = 2 }
    let running = try desk.idleConnection()
    let first = try desk.request()
    #expect(desk.take() == [.run(first, on: running)])
    let waiting = try desk.request()
    let dialing = try desk.takeDial()
    desk.machine.shutDown(into: &desk.actions)
    #expect(desk.take() == [.fail(waiting, .closed), .close(dialing)])
    desk.opened(dialing)
    #expect(desk.take() == [])
    let late = try desk.request()
    #expect(desk.take() == [.fail(late, .closed)])
    desk.ended(running)
    #expect(desk.take() == [.close(running), .forget(desk.endpoint)])
  }

  /// A pool that is shut down sets no timer, even just after a failed dial.
  @Test func nothingIsTimedAfterShuttingDown() throws {
    var desk = Desk { $0.perEndpointMax = 3 }
    var running: [PoolMachine.ConnectionID] = []
    for _ in 0..<2 {
      let requestID = try desk.request()
      let connection = try desk.takeDial()
      desk.opened(connection)
      #expect(desk.take() == [.run(requestID, on: connection)])
      running.append(connection)
    }
    _ = try desk.request()
    desk.failed(try desk.takeDial())
    desk.machine.shutDown(into: &desk.actions)
    for connection in running {
      desk.ended(connection)
      #expect(desk.machine.timer == .never)
    }
  }

  @Test func anEndpointThatIsForgottenIsNotKnown() throws {
    var desk = Desk()
    desk.machine.connectionClosed(try desk.idleConnection(), now: desk.now, into: &desk.actions)
    #expect(desk.take() == [.forget(desk.endpoint)])
    let requestID = desk.machine.requested(desk.endpoint, .init(), now: desk.now, into: &desk.actions)
    #expect(requestID == nil)
    let next = desk.machine.addEndpoint()
    #expect(next != desk.endpoint)
  }
}

extension PoolMachine.Action {
  var dialed: PoolMachine.ConnectionID? {
    if case .dial(let id, _) = self { id } else { nil }
  }
}
