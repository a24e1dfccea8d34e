import Glibc
import Synchronization

/// The reason why a run ends without a result.
package struct Failure: Error, CustomStringConvertible {
  package var description: String
  package init(description: String) { self.description = description }
}

/// A number of requests that several tasks share.
package final class Counter: Sendable {
  private let left: Atomic<Int>
  package init(_ count: Int) { left = Atomic(count) }
  package func take() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}

extension Workload {
  /// Makes `count` requests, `tasks` at a time.
  package func makeRequests(_ count: Int, by load: @escaping @Sendable () async throws -> Void) async throws {
    guard tasks > 1 else {
      for _ in 0..<count { try await load() }
      return
    }
    let left = Counter(count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<tasks {
        group.addTask { while left.take() { try await load() } }
      }
      try await group.waitForAll()
    }
  }

  /// Makes the requests that are not measured, then those that are, and prints the result of the latter.
  ///
  /// - Parameter run: Makes a number of requests. The array of latencies in nanoseconds is empty if the workload measures
  ///   none.
  package func measure(_ requests: Int, _ run: (Int) async throws -> [Int]) async throws {
    _ = try await run(min(requests / 10, 1_000))
    let (cpu, start) = (ProcessUsage.cpuMicroseconds, ContinuousClock.now)
    let latencies = try await run(requests).sorted()
    let wall = Int((ContinuousClock.now - start) / .microseconds(1))
    var result =
      "{\"requests\":\(requests),\"cpu_us\":\(ProcessUsage.cpuMicroseconds - cpu),\"wall_us\":\(wall),"
      + "\"bytes\":\(requests * movedBytes),\"peak_rss_kib\":\(ProcessUsage.peakRSSKiB)"
    if isPaced {
      for (name, thousandths) in [("p50", 500), ("p99", 990), ("p999", 999)] {
        result += ",\"\(name)_us\":\(latencies[(latencies.count * thousandths - 1) / 1_000] / 1_000)"
      }
    }
    print(result + "}")
  }
}

/// Requests that begin at a fixed rate, whether or not the ones before are complete. A latency counts from the time at
/// which the request should begin, so that a late beginning counts as well.
package final class Pace: Sendable {
  private struct State {
    var latencies: [Int] = []
    var done: CheckedContinuation<[Int], any Error>?
  }

  private let count: Int
  private let load: @Sendable () async throws -> Void
  private let state: Mutex<State>

  private init(
    _ count: Int, by load: @escaping @Sendable () async throws -> Void, _ done: CheckedContinuation<[Int], any Error>
  ) {
    (self.count, self.load) = (count, load)
    state = Mutex(State(done: done))
  }

  /// Makes `count` requests at the rate of the environment variable `RATE`, in requests for each second.
  ///
  /// - Returns: The latencies in nanoseconds.
  package static func latencies(
    of count: Int, by load: @escaping @Sendable () async throws -> Void
  ) async throws -> [Int] {
    guard let text = getenv("RATE"), let rate = Int(String(cString: text)), rate > 0 else {
      throw Failure(description: "RATE is not a number of requests for each second")
    }
    guard count > 0 else { return [] }
    return try await withCheckedThrowingContinuation { done in
      let pace = Pace(count, by: load, done)
      startThread { pace.begin(each: 1_000_000_000 / rate) }
    }
  }

  /// Begins the requests, each in a task, from a thread of its own: a sleeping task wakes less exactly.
  private func begin(each nanoseconds: Int) {
    let start = Self.now
    for number in 0..<count {
      let due = start + number * nanoseconds
      var time = timespec(tv_sec: due / 1_000_000_000, tv_nsec: due % 1_000_000_000)
      while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
      Task.detached { [self] in await request(due: due) }
    }
  }

  private func request(due: Int) async {
    do {
      try await load()
      let latency = Self.now - due
      state.withLock { state in
        state.latencies.append(latency)
        if state.latencies.count == count { state.done.take()?.resume(returning: state.latencies) }
      }
    } catch {
      state.withLock { $0.done.take() }?.resume(throwing: error)
    }
  }

  private static var now: Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }

  private static func startThread(_ body: @escaping @Sendable () -> Void) {
    final class Box {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(body))
    let status = pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
        return nil
      }, box.toOpaque())
    if status == 0 { pthread_detach(thread) } else { box.release() }
  }
}
