// The memory, the descriptors and the threads that sessions hold.
//
//   TestHelper session-footprint sessions URL COUNT    one session for each request, one after another: nothing is left
//                                                      behind
//   TestHelper session-footprint delegate URL COUNT    a slow delegate of a body of COUNT bytes: memory does not grow
//   TestHelper session-footprint bytes URL COUNT       a slow reader of `AsyncBytes` of such a body

import Foundation
import Larkspur
import LarkspurTransport
import Synchronization
import TestKit

/// Maximum growth of the resident memory during a transfer, in KiB.
private let growthKiBMax = 8 << 10
/// Maximum number of additional threads. Dispatch starts some by itself; one thread for each session would exceed this.
private let threadsMoreMax = 32

/// The peak of the resident memory since this object was created.
private final class Peak: Sendable {
  private let before = Footprint.now().residentKiB
  private let most = Mutex(0)

  func look() {
    let present = Footprint.now().residentKiB
    most.withLock { $0 = max($0, present) }
  }

  func check() throws {
    let grown = most.withLock { $0 } - before
    print("\(before) KiB at rest, \(grown) more at the most")
    guard grown <= growthKiBMax else { throw Failure("grown by \(grown) KiB") }
  }
}

/// A delegate that pauses at every second piece of the body.
private final class SlowDelegate: NSObject, URLSessionDataDelegate {
  struct State {
    var pieces = 0
    var bytes = 0
    var isOver: CheckedContinuation<(any Error)?, Never>?
  }

  let state = Mutex(State())
  private let peak: Peak?
  private let never = DispatchSemaphore(value: 0)

  init(_ peak: Peak?) { self.peak = peak }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let pieces = state.withLock { state in
      state.pieces += 1
      state.bytes += data.count
      return state.pieces
    }
    if pieces.isMultiple(of: 2) { _ = never.wait(timeout: .now() + .milliseconds(1)) }
    if pieces.isMultiple(of: 16) { peak?.look() }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    state.withLock { $0.isOver.take() }?.resume(returning: error)
  }
}

private func loadSlowly(_ url: URL, _ peak: Peak?) async throws -> Int {
  let delegate = SlowDelegate(peak)
  let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
  defer { session.finishTasksAndInvalidate() }
  let error = await withCheckedContinuation { continuation in
    delegate.state.withLock { $0.isOver = continuation }
    session.dataTask(with: url).resume()
  }
  if let error { throw error }
  return delegate.state.withLock { $0.bytes }
}

private func readSlowly(_ url: URL, _ peak: Peak?) async throws -> Int {
  let (bytes, _) = try await URLSession(configuration: .ephemeral).bytes(from: url)
  var count = 0
  for try await _ in bytes {
    count += 1
    if count.isMultiple(of: 1 << 20) { peak?.look() }
  }
  return count
}

private func checkMemory(
  _ url: URL, _ count: Int, _ load: (URL, Peak?) async throws -> Int
) async throws {
  let small = url.appending(path: "bytes/\(4 << 20)")
  for _ in 0..<3 { _ = try await load(small, nil) }
  let peak = Peak()
  let received = try await load(url.appending(path: "bytes/\(count)"), peak)
  guard received == count else { throw Failure("\(received) bytes came") }
  peak.look()
  try peak.check()
}

private func threadCount() -> Int {
  (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0
}

/// Number of slots in use on all loops, for channels and for timers.
private func slotCount() async throws -> Int {
  var count = 0
  // `lease` returns the loop with the fewest leases, so that as many calls as there are loops return each loop once.
  let loops = try (0..<LoopGroup.shared.count).map { _ in try LoopGroup.shared.lease() }
  for held in loops { count += await held.loop.run { held.loop.slotsInUse } }
  return count
}

private func checkSessions(_ url: URL, _ count: Int) async throws {
  let small = url.appending(path: "bytes/100")
  func run(_ count: Int) async throws {
    for _ in 0..<count {
      let session = URLSession(configuration: .ephemeral)
      let (data, _) = try await session.data(from: small)
      guard data.count == 100 else { throw Failure("\(data.count) bytes came") }
      session.finishTasksAndInvalidate()
    }
  }
  try await run(count / 10)
  let (before, threads) = (Footprint.now(), threadCount())
  try await run(count)
  // The loops close the last sessions' connections from their inboxes, and a descriptor closes with its last reference,
  // which may be a task on the loop that has already delivered its result. So this checks until all are closed.
  var (slots, after) = (try await slotCount(), Footprint.now())
  for _ in 0..<1_000 where slots > 0 || after.descriptors > before.descriptors {
    (slots, after) = (try await slotCount(), Footprint.now())
  }
  let threadsAfter = threadCount()
  let words =
    "\(before.residentKiB) KiB, \(before.descriptors) descriptors, \(threads) threads; then \(after.residentKiB) KiB, "
    + "\(after.descriptors) descriptors, \(threadsAfter) threads, \(slots) slots"
  print(words)
  guard slots == 0, after.descriptors <= before.descriptors, threadsAfter <= threads + threadsMoreMax,
    after.residentKiB <= before.residentKiB + growthKiBMax
  else { throw Failure("something stays") }
}

func runSessionFootprint(_ arguments: [String]) async throws {
  guard arguments.count == 3, let url = URL(string: arguments[1]), let count = Int(arguments[2]) else {
    throw Failure.wrongArguments
  }
  switch arguments[0] {
  case "sessions": try await checkSessions(url, count)
  case "delegate": try await checkMemory(url, count, loadSlowly)
  case "bytes": try await checkMemory(url, count, readSlowly)
  default: throw Failure.wrongArguments
  }
}
