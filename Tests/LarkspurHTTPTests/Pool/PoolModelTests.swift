import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

/// The pool under random facts, compared with simple bookkeeping.
@Suite struct PoolModelTests {
  struct Books {
    enum Connection: Equatable {
      case dialing
      case open(inFlight: Int)
    }

    var machine: PoolMachine
    let limits: PoolLimits
    var now = Deadline(nanoseconds: 0)
    var endpoints: [PoolMachine.EndpointID?]
    /// The endpoint of each waiting request.
    var waiting: [PoolMachine.RequestID: Int] = [:]
    /// All requests so far that need a connection which has not served before.
    var freshWaiting: Set<PoolMachine.RequestID> = []
    var connections: [PoolMachine.ConnectionID: (state: Connection, endpoint: Int)] = [:]
    var isShutDown = false

    init(_ limits: PoolLimits, endpoints count: Int) {
      self.limits = limits
      machine = PoolMachine(limits: limits)
      endpoints = Array(repeating: nil, count: count)
    }

    mutating func apply(
      _ actions: PoolMachine.Actions, asking: (requestID: PoolMachine.RequestID, endpoint: Int)? = nil
    )
      throws
    {
      if let asking { waiting[asking.requestID] = asking.endpoint }
      for action in actions {
        switch action {
        case .run(let requestID, let id):
          let endpoint = try #require(waiting[requestID], "a request ran that did not wait")
          waiting[requestID] = nil
          let connection = try #require(connections[id], "a request ran on a connection that is gone")
          try #require(connection.endpoint == endpoint)
          switch connection.state {
          case .dialing: throw PoolMachineTests.Unexpected(actions: actions)
          case .open(let inFlight):
            try #require(inFlight < limits.pipelineDepth)
            connections[id]?.state = .open(inFlight: inFlight + 1)
          }
        case .fail(let requestID, _):
          try #require(waiting[requestID] != nil)
          waiting[requestID] = nil
        case .dial(let id, let endpoint):
          try #require(connections[id] == nil && !isShutDown)
          connections[id] = (.dialing, try #require(endpoints.firstIndex(of: endpoint)))
        case .close(let id):
          try #require(connections[id] != nil, "closed twice")
          connections[id] = nil
        case .forget(let endpoint):
          let index = try #require(endpoints.firstIndex(of: endpoint))
          try #require(!connections.values.contains { $0.endpoint == index })
          try #require(!waiting.values.contains(index))
          endpoints[index] = nil
        }
      }
      try check()
    }

    func check() throws {
      try #require(machine.connectionCount == connections.count)
      try #require(machine.waitingCount == waiting.count)
      try #require(connections.count <= limits.totalMax)
      let idle = connections.values.filter { $0.state == .open(inFlight: 0) }
      try #require(machine.idleCount == idle.count)
      for index in endpoints.indices {
        let own = connections.values.filter { $0.endpoint == index }
        try #require(own.count <= limits.perEndpointMax)
        // Requests wait without a dial or a connection of their own only if other endpoints use up the total limit.
        if waiting.values.contains(index), own.isEmpty {
          try #require(connections.count == limits.totalMax && idle.isEmpty)
        }
      }
    }

    mutating func step(_ random: inout SeededGenerator) throws {
      var actions: PoolMachine.Actions = []
      let dialing = connections.filter { $0.value.state == .dialing }.keys
      let running = connections.filter { if case .open(1...) = $0.value.state { true } else { false } }.keys
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<35:
        let index = Int.random(in: endpoints.indices, using: &random)
        let endpoint = endpoints[index] ?? machine.addEndpoint()
        endpoints[index] = endpoint
        var demand = PoolMachine.Demand()
        demand.priority = UInt8.random(in: 127...129, using: &random)
        demand.isPipelinable = Bool.random(using: &random)
        demand.needsFresh = Int.random(in: 0..<10, using: &random) == 0
        if !demand.needsFresh, Bool.random(using: &random) {
          let taken = machine.took(endpoint, isPipelinable: demand.isPipelinable, now: now, into: &actions)
          if let taken {
            try #require(
              !waiting.contains { $0.value == index && !freshWaiting.contains($0.key) }, "somebody else was first")
            let connection = try #require(connections[taken.id], "a connection was taken that is gone")
            try #require(connection.state == .open(inFlight: 0) && connection.endpoint == index)
            connections[taken.id]?.state = .open(inFlight: 1)
            return try apply(actions)
          }
          try apply(actions)
          // Closing expired connections may have removed the endpoint.
          guard endpoints[index] != nil else { return }
          try #require(
            waiting.values.contains(index) || !connections.values.contains { $0 == (.open(inFlight: 0), index) })
          actions = []
        }
        let requestID = machine.requested(endpoint, demand, now: now, into: &actions)
        if demand.needsFresh, let requestID { freshWaiting.insert(requestID) }
        return try apply(actions, asking: (try #require(requestID), index))
      case 35..<42:
        guard
          let requestID = waiting.keys.sorted(by: { $0.sequenceNumber < $1.sequenceNumber }).randomElement(
            using: &random)
        else {
          return
        }
        waiting[requestID] = nil
        machine.cancelled(requestID, now: now, into: &actions)
      case 42..<60:
        guard let id = pick(dialing, &random) else { return }
        connections[id]?.state = .open(inFlight: 0)
        machine.dialSucceeded(id, now: now, into: &actions)
      case 60..<65:
        guard let id = pick(dialing, &random) else { return }
        connections[id] = nil
        machine.dialFailed(id, isOurs: Bool.random(using: &random), now: now, into: &actions)
      case 65..<90:
        guard let id = pick(running, &random), case .open(let inFlight)? = connections[id]?.state else { return }
        connections[id]?.state = .open(inFlight: inFlight - 1)
        let isReusable = Int.random(in: 0..<5, using: &random) > 0
        guard Int.random(in: 0..<5, using: &random) > 0 else {
          machine.connectionReturned(id, isOpen: isReusable, now: now, into: &actions)
          break
        }
        let outcome = PoolMachine.ExchangeOutcome(
          isReusable: isReusable, idle: Bool.random(using: &random) ? .seconds(3) : nil,
          requestsLeft: Int.random(in: 0..<20, using: &random) == 0 ? 0 : nil)
        machine.exchangeEnded(id, outcome, now: now, into: &actions)
      case 90..<94:
        guard let id = pick(connections.filter { $0.value.state != .dialing }.keys, &random) else { return }
        connections[id] = nil
        machine.connectionClosed(id, now: now, into: &actions)
      case 94..<99:
        now = now.advanced(by: .milliseconds(Int.random(in: 0..<3_000, using: &random)))
        machine.timerFired(now: now, into: &actions)
      default:
        machine.connectionsOutdated(into: &actions)
      }
      try apply(actions)
    }

    private func pick(
      _ ids: some Collection<PoolMachine.ConnectionID>, _ random: inout SeededGenerator
    ) -> PoolMachine.ConnectionID? {
      ids.sorted { $0.index < $1.index }.randomElement(using: &random)
    }

    /// If every new dial fails at once and earlier ones are silent, only a bounded number of dials begins at one time.
    mutating func refuse() throws {
      let silent = Set(connections.keys)
      let most = 2 * (waiting.count + connections.count)
      var failed = 0
      while let id = connections.first(where: { $0.value.state == .dialing && !silent.contains($0.key) })?.key {
        failed += 1
        try #require(failed <= most, "connections are opened over and over")
        connections[id] = nil
        var actions: PoolMachine.Actions = []
        machine.dialFailed(id, isOurs: true, now: now, into: &actions)
        try apply(actions)
      }
    }

    /// When everything in progress has ended, no request is left waiting.
    mutating func finish() throws {
      for _ in 0..<100_000
      where !waiting.isEmpty || connections.values.contains(where: { $0.state != .open(inFlight: 0) }) {
        var actions: PoolMachine.Actions = []
        if let id = connections.first(where: { $0.value.state == .dialing })?.key {
          connections[id]?.state = .open(inFlight: 0)
          machine.dialSucceeded(id, now: now, into: &actions)
        } else if let (id, value) = connections.first(where: { $0.value.state != .open(inFlight: 0) }),
          case .open(let inFlight) = value.state
        {
          connections[id]?.state = .open(inFlight: inFlight - 1)
          machine.exchangeEnded(id, .init(isReusable: true), now: now, into: &actions)
        }
        try apply(actions)
      }
      try #require(waiting.isEmpty)
      isShutDown = true
      var actions: PoolMachine.Actions = []
      machine.shutDown(into: &actions)
      try apply(actions)
      try #require(connections.isEmpty && endpoints.allSatisfy { $0 == nil })
    }
  }

  @Test func randomFacts() throws {
    var random = SeededGenerator(for: "pool")
    for _ in 0..<100 {
      var limits = PoolLimits()
      limits.perEndpointMax = Int.random(in: 1...4, using: &random)
      limits.totalMax = Int.random(in: 1...8, using: &random)
      limits.idleMax = .seconds(5)
      limits.ageMax = Bool.random(using: &random) ? .seconds(10) : nil
      limits.requestsMax = Bool.random(using: &random) ? 5 : .max
      limits.pipelineDepth = Bool.random(using: &random) ? 3 : 1
      var books = Books(limits, endpoints: Int.random(in: 1...5, using: &random))
      for number in 0..<300 {
        try books.step(&random)
        if number.isMultiple(of: 50) { try books.refuse() }
      }
      try books.finish()
    }
  }
}
