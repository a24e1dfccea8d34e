// Session scenarios that need a process of their own, because they measure memory, descriptors and threads of the
// process or run in a network of their own. Prints each failure, and exits with 1 if there is one.
//
//   BehaviourProbe sessions URL COUNT    one session for each request, one after another: nothing is left behind
//   BehaviourProbe delegate URL COUNT    a slow delegate of a body of COUNT bytes: memory does not grow
//   BehaviourProbe bytes URL COUNT       a slow reader of `AsyncBytes` of such a body
//   BehaviourProbe connectivity URL SECONDS
//                                      waits for a network: prints `waiting`, and then `status N` or `failed CODE`
//   BehaviourProbe impatient URL 0       the same load without waiting

import Foundation
import Larkspur
import LarkspurTransport
import Synchronization
import TestKit

/// Maximum growth of the resident memory during a transfer, in KiB.
let growthKiBMax = 8 << 10
/// Maximum number of additional threads. Dispatch starts some by itself; one thread for each session would exceed this.
let threadsMoreMax = 32

struct Complaint: Error, CustomStringConvertible {
  let description: String
}

/// The peak of the resident memory since this object was created.
final class Peak: Sendable {
  private let before = Footprint.now().residentKiB
  private let most = Mutex(0)

  func look() {
    let present = Footprint.now().residentKiB
    most.withLock { $0 = max($0, present) }
  }

  func check() throws {
    let grown = most.withLock { $0 } - before
    print("\(before) KiB at rest, \(grown) more at the most")
    guard grown <= growthKiBMax else { throw Complaint(description: "grown by \(grown) KiB") }
  }
}

/// A delegate that pauses at every eighth piece of the body.
final class SlowDelegate: NSObject, URLSessionDataDelegate {
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
    if pieces.isMultiple(of: 8) { _ = never.wait(timeout: .now() + .milliseconds(1)) }
    if pieces.isMultiple(of: 64) { peak?.look() }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    state.withLock { $0.isOver.take() }?.resume(returning: error)
  }
}

func loadSlowly(_ url: URL, _ peak: Peak?) async throws -> Int {
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

func readSlowly(_ url: URL, _ peak: Peak?) async throws -> Int {
  let (bytes, _) = try await URLSession(configuration: .ephemeral).bytes(from: url)
  var count = 0
  for try await _ in bytes {
    count += 1
    if count.isMultiple(of: 1 << 20) { peak?.look() }
  }
  return count
}

func checkMemory(
  _ url: URL, _ count: Int, _ load: (URL, Peak?) async throws -> Int
) async throws {
  let small = url.appending(path: "bytes/\(4 << 20)")
  for _ in 0..<3 { _ = try await load(small, nil) }
  let peak = Peak()
  let received = try await load(url.appending(path: "bytes/\(count)"), peak)
  guard received == count else { throw Complaint(description: "\(received) bytes came") }
  peak.look()
  try peak.check()
}

func threadCount() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0 }

/// Number of slots in use on all loops, for channels and for timers.
func slotCount() async throws -> Int {
  var count = 0
  // `take` returns the loop with the fewest leases, so that as many calls as there are loops return each loop once.
  let loops = try (0..<LoopGroup.shared.count).map { _ in try LoopGroup.shared.take() }
  for held in loops { count += await held.loop.run { held.loop.slotsInUse } }
  return count
}

func checkSessions(_ url: URL, _ count: Int) async throws {
  let small = url.appending(path: "bytes/100")
  func run(_ count: Int) async throws {
    for _ in 0..<count {
      let session = URLSession(configuration: .ephemeral)
      let (data, _) = try await session.data(from: small)
      guard data.count == 100 else { throw Complaint(description: "\(data.count) bytes came") }
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
  else { throw Complaint(description: "something stays") }
}

/// A delegate that prints `waiting` when a task waits for connectivity.
final class WaitingDelegate: NSObject, URLSessionTaskDelegate {
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) { say("waiting") }
}

func say(_ words: String) { FileHandle.standardOutput.write(Data((words + "\n").utf8)) }

func load(_ url: URL, waits: Bool, seconds: Int) async throws {
  let configuration = URLSessionConfiguration.ephemeral
  configuration.waitsForConnectivity = waits
  configuration.timeoutIntervalForRequest = 5
  if seconds > 0 { configuration.timeoutIntervalForResource = TimeInterval(seconds) }
  let session = URLSession(configuration: configuration, delegate: WaitingDelegate(), delegateQueue: nil)
  do {
    let (_, response) = try await session.data(from: url)
    say("status \((response as? HTTPURLResponse)?.statusCode ?? 0)")
  } catch let error as URLError {
    say("failed \(error.code.rawValue)")
  }
}

do {
  let words = CommandLine.arguments
  guard words.count == 4, let url = URL(string: words[2]), let count = Int(words[3]) else {
    throw Complaint(description: "what is to be done?")
  }
  switch words[1] {
  case "sessions": try await checkSessions(url, count)
  case "delegate": try await checkMemory(url, count, loadSlowly)
  case "bytes": try await checkMemory(url, count, readSlowly)
  case "connectivity": try await load(url, waits: true, seconds: count)
  case "impatient": try await load(url, waits: false, seconds: count)
  default: throw Complaint(description: "what is \(words[1])?")
  }
} catch {
  say("\(error)")
  exit(1)
}
