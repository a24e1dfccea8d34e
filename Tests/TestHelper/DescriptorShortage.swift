// A pool in a process that may open only a few more descriptors: the pool closes idle connections to make room, a
// connection that cannot be opened fails with an error that says why, and requests succeed again once there is room.
// Prints each failure, and fails if there is one.
//
//   TestHelper descriptor-shortage PORT PORT PORT    the ports of three test servers on 127.0.0.1

import Glibc
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit

/// Number of sockets that the process can open.
private let room = 8

private final class Shortage: @unchecked Sendable {
  let loop: ClientLoop
  let pool: Pool
  let routes: [Route]
  /// Routes to the servers of `routes`, by a name: a lookup needs descriptors, too.
  let namedRoutes: [Route]
  private(set) var complaints: [String] = []
  private(set) var answered = 0
  private(set) var failed = 0

  init(_ ports: [UInt16]) throws {
    loop = try ClientLoop()
    pool = Pool(on: loop)
    routes = ports.map { Route(host: "127.0.0.1", port: $0) }
    namedRoutes = ports.map { Route(host: "localhost", port: $0) }
  }

  func complain(_ words: String) { complaints.append(words) }

  func expect(_ isTrue: Bool, _ words: String) { if !isTrue { complain(words) } }

  /// Sends a request through the pool.
  ///
  /// - Returns: The error, or `nil` if the server answered.
  func get(_ target: String, from route: Route) async -> TransportError? {
    do throws(TransportError) {
      let reply = try await pool.fetch(PoolRequest(request("GET", target)), from: route)
      expect(reply.status == 200, "\(target): \(reply.status)")
      answered += 1
      return nil
    } catch {
      failed += 1
      return error
    }
  }

  private func start(_ target: String, from route: Route) -> Task<TransportError?, Never> {
    Task(executorPreference: loop) { @concurrent [self] () -> TransportError? in await get(target, from: route) }
  }

  /// Sends `count` requests at once.
  ///
  /// - Returns: The outcome of each request.
  func get(_ target: String, _ count: Int, from route: Route) async -> [TransportError?] {
    await withTaskGroup(of: TransportError?.self) { group in
      for _ in 0..<count { group.addTask { [self] in await get(target, from: route) } }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  func idleConnectionsGiveWay() async {
    for route in routes {
      let outcomes = await get("/delay/5", 6, from: route)
      expect(outcomes.allSatisfy { $0 == nil }, "idle connections did not give way: \(outcomes)")
    }
    expect(pool.counts.connections <= room, "\(pool.counts) with room for \(room)")
  }

  func whatCannotBeOpenedFails() async {
    pool.renewConnections()
    // Six connections and two: no room is left.
    let hanging = [(routes[0], 6), (routes[1], 2)].flatMap { route, count in
      (0..<count).map { _ in
        start("/hang", from: route)
      }
    }
    expect(await loop.waits { pool.counts.connections - pool.counts.idle == room }, "room is left: \(pool.counts)")
    let outcomes = await get("/get", 10, from: routes[2])
    expect(
      outcomes.allSatisfy { $0 == .unavailable(.tooManyDescriptors) }, "without descriptors: \(outcomes)")
    // This route has connections that become free sooner or later, so that the request waits for one.
    let waiting = start("/get", from: routes[1])
    expect(await loop.waits { pool.counts.waiting == 1 }, "the request does not wait: \(pool.counts)")
    for task in hanging { task.cancel() }
    for task in hanging {
      let error = await task.value
      expect(error == .cancelled, "a request that was cancelled: \(String(describing: error))")
    }
    let error = await waiting.value
    expect(error == nil, "a request that waited: \(String(describing: error))")
  }

  /// Runs requests over more routes and tasks than there is room for, in any order.
  func muddleThrough(_ routes: [Route]) async {
    (answered, failed) = (0, 0)
    await withDiscardingTaskGroup { group in
      for lane in 0..<18 {
        group.addTask { [self] in
          for number in 0..<100 {
            let error = await get("/bytes/1000", from: routes[(lane + number) % routes.count])
            if let error, error != .unavailable(.tooManyDescriptors) { complain("in the muddle: \(error)") }
          }
        }
      }
    }
    expect(answered > failed, "\(answered) answered, \(failed) failed")
  }

  /// Closes idle connections until none is open.
  func drain() async {
    let isEmpty = await loop.waits {
      pool.renewConnections()
      return pool.counts.connections == 0
    }
    expect(isEmpty, "connections are open: \(pool.counts)")
  }

  func nothingIsLeft(_ before: Footprint) async {
    await drain()
    pool.shutDown()
    let descriptors = Footprint.now().descriptors - before.descriptors
    expect(descriptors <= 0, "\(descriptors) descriptors are left")
    expect(loop.slotsInUse == 0, "\(loop.slotsInUse) slots are left")
    expect(loop.chunkBytesLent == 0, "\(loop.chunkBytesLent) bytes of chunks are left")
  }
}

/// Limits the process to `count` descriptors more than it has open. Assumes that the open ones are numbered from zero
/// with few gaps.
private func leaveRoom(_ count: Int) -> Bool {
  var taken: [Int32] = []
  var limit = rlimit()
  guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
  // `dup` returns the lowest free numbers: the highest of them becomes the highest number that the process may open.
  for _ in 0..<count { taken.append(dup(0)) }
  limit.rlim_cur = rlim_t((taken.max() ?? 0) + 1)
  for descriptor in taken { close(descriptor) }
  return setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
}

func runDescriptorShortage(_ arguments: [String]) async throws {
  let shortage = try Shortage(arguments.compactMap { UInt16($0) })
  guard shortage.routes.count == 3 else { throw Failure.wrongArguments }
  let before = Footprint.now()
  await shortage.loop.run {
    // What the runtime and the resolver open for a moment when their threads start would count as taken for good.
    await shortage.muddleThrough(shortage.namedRoutes)
    await shortage.drain()
  }
  guard leaveRoom(room) else { throw Failure("the limit cannot be set") }
  await shortage.loop.run {
    for _ in 0..<20 {
      await shortage.idleConnectionsGiveWay()
      await shortage.whatCannotBeOpenedFails()
      await shortage.muddleThrough(shortage.routes)
      await shortage.muddleThrough(shortage.namedRoutes)
    }
    // There is room again, and every request is answered.
    await shortage.drain()
    await shortage.idleConnectionsGiveWay()
    await shortage.nothingIsLeft(before)
  }
  for complaint in shortage.complaints.prefix(20) { print(complaint) }
  guard shortage.complaints.isEmpty else { throw Failure("\(shortage.complaints.count) failures") }
}
