// Larkspur as a client of `Benchmarks/compare`: code that runs on the loop, over the transport's own API.
// Called as `larkspur-bench WORKLOAD HOST PORT REQUESTS`; the contract is in Benchmarks/README.md.

import Glibc
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

struct Workload {
  var path: String
  var connections: Int
  var bodyBytes: Int

  static let all: [String: Workload] = [
    "serial-tiny": Workload(path: "/tiny", connections: 1, bodyBytes: 13),
    "concurrent-tiny": Workload(path: "/tiny", connections: 64, bodyBytes: 13),
    "concurrent-100k": Workload(path: "/100k", connections: 64, bodyBytes: 100 * 1024),
    "download-1g": Workload(path: "/1g", connections: 1, bodyBytes: 1 << 30),
  ]
}

/// What goes wrong with a response.
struct Failure: Error, CustomStringConvertible {
  var description: String
}

/// Written once and sent often, like the request of the raw floor and like what a curl handle keeps.
func requestHead(_ workload: Workload, host: String) throws -> RequestHead {
  var writer = try RequestWriter(method: "GET", target: workload.path, host: host)
  try writer.field("Accept", "*/*")
  try writer.field("User-Agent", "larkspur")
  return writer.finish()
}

func request(_ head: RequestHead, over connection: Connection, _ workload: Workload) async throws {
  let exchange = try await connection.send(head)
  var received = 0
  try await exchange.receiveBody { received += $0.count }
  guard exchange.status == 200, received == workload.bodyBytes else {
    throw Failure(description: "status \(exchange.status), \(received) bytes of body")
  }
}

/// Runs `count` requests over all connections, each connection back to back.
func run(_ count: Int, over connections: [Connection], _ workload: Workload, host: String) async throws {
  let head = try requestHead(workload, host: host)
  guard connections.count > 1 else {
    try await connections[0].cancelledWithTask {
      for _ in 0..<count { try await request(head, over: connections[0], workload) }
    }
    return
  }
  // All tasks run on the one loop, so that a plain counter is theirs alone.
  let left = Counter(count)
  try await withThrowingTaskGroup(of: Void.self) { group in
    for connection in connections {
      let lane = Lane(connection)
      group.addTask {
        try await lane.connection.cancelledWithTask {
          while left.take() { try await request(head, over: lane.connection, workload) }
        }
      }
    }
    try await group.waitForAll()
  }
}

/// What the tasks of one loop share: it never leaves the loop's thread.
final class Counter: @unchecked Sendable {
  private var left: Int
  init(_ left: Int) { self.left = left }
  func take() -> Bool {
    left -= 1
    return left >= 0
  }
}

final class Lane: @unchecked Sendable {
  let connection: Connection
  init(_ connection: Connection) { self.connection = connection }
}

func cpuMicroseconds() -> Int {
  var usage = rusage()
  getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
}

func peakRSSKiB() -> Int {
  // VmHWM rather than ru_maxrss, which survives the exec of whoever started us.
  guard let file = fopen("/proc/self/status", "r") else { return 0 }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 256)
  while fgets(&line, Int32(line.count), file) != nil {
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    if text.hasPrefix("VmHWM:") { return Int(text.filter(\.isNumber)) ?? 0 }
  }
  return 0
}

func complain(_ text: String) {
  let line = text + "\n"
  write(STDERR_FILENO, line, line.utf8.count)
}

let arguments = CommandLine.arguments
guard arguments.count == 5, let workload = Workload.all[arguments[1]], let port = UInt16(arguments[3]),
  let requests = Int(arguments[4])
else {
  complain("usage: larkspur-bench WORKLOAD HOST PORT REQUESTS")
  exit(2)
}
let host = arguments[2]

func measure(on loop: ClientLoop) async throws {
  var connections: [Connection] = []
  for _ in 0..<min(workload.connections, requests) {
    connections.append(try await Connection.open(host: host, port: port, on: loop))
  }
  if workload.bodyBytes < 1 << 30 {
    try await run(min(requests / 10, 1000), over: connections, workload, host: host)
  }
  let cpu = cpuMicroseconds()
  let start = ContinuousClock.now
  try await run(requests, over: connections, workload, host: host)
  let wall = Int((ContinuousClock.now - start) / .microseconds(1))
  print(
    "{\"requests\":\(requests),\"cpu_us\":\(cpuMicroseconds() - cpu),\"wall_us\":\(wall),"
      + "\"bytes\":\(requests * workload.bodyBytes),\"peak_rss_kib\":\(peakRSSKiB())}")
  for connection in connections { connection.close() }
}

// The loop runs on the main thread: there is no other, so that a profile shows the client and nothing else.
do {
  let loop = try ClientLoop(withoutThreadOn: LinuxKernel.shared)
  Task(executorPreference: loop) { @concurrent in
    do {
      try await measure(on: loop)
      exit(0)
    } catch {
      complain("larkspur-bench: \(error)")
      exit(1)
    }
  }
  while true { loop.takeTurn() }
} catch {
  complain("larkspur-bench: \(error)")
  exit(1)
}
