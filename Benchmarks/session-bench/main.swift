// Larkspur's URLSession as a client of `Benchmarks/compare`: the public API, awaited as a program would.
// Called as `larkspur-session-bench [--loop] WORKLOAD HOST PORT REQUESTS [CA_FILE]`; the contract is in Benchmarks/README.md.
// With `--loop`, who awaits runs on the session's own executor.

import BenchmarkUsage
import Dispatch
import Foundation
import Larkspur
import Synchronization

struct Workload {
  enum Kind {
    case data
    /// To a delegate, which throws it away.
    case discard
    /// Byte by byte, by `bytes(from:)`.
    case bytes
    case download
  }

  var path: String
  var bodyBytes: Int
  var tasks = 1
  var kind = Kind.data
  var isSecure = false

  static let all: [String: Workload] = [
    "serial-tiny": Workload(path: "/tiny", bodyBytes: 13),
    "concurrent-tiny": Workload(path: "/tiny", bodyBytes: 13, tasks: 64),
    "concurrent-100k": Workload(path: "/100k", bodyBytes: 100 << 10, tasks: 64),
    "download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .discard),
    "download-1g-file": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .download),
    "download-1g-memory": Workload(path: "/1g", bodyBytes: 1 << 30),
    "bytes-1g": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .bytes),
    "https-serial-tiny": Workload(path: "/tiny", bodyBytes: 13, isSecure: true),
    "https-concurrent-tiny": Workload(path: "/tiny", bodyBytes: 13, tasks: 64, isSecure: true),
    "https-download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .discard, isSecure: true),
  ]
}

struct Failure: Error, CustomStringConvertible {
  var description: String
}

final class Discarder: NSObject, URLSessionDataDelegate {
  private let received = Mutex(0)
  private let done = Mutex<CheckedContinuation<Int, any Error>?>(nil)

  func load(_ url: URL, by session: URLSession) async throws -> Int {
    received.withLock { $0 = 0 }
    return try await withCheckedThrowingContinuation { continuation in
      done.withLock { $0 = continuation }
      session.dataTask(with: url).resume()
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    received.withLock { $0 += data.count }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let continuation = done.withLock { $0.take() }
    if let error { return continuation?.resume(throwing: error) ?? () }
    continuation?.resume(returning: received.withLock { $0 })
  }
}

struct Client: Sendable {
  let workload: Workload
  let url: URL
  let session: URLSession
  let discarder = Discarder()

  init(_ workload: Workload, host: String, port: String, caFile: String?) throws {
    self.workload = workload
    guard let url = URL(string: "\(workload.isSecure ? "https" : "http")://\(host):\(port)\(workload.path)") else {
      throw Failure(description: "bad host")
    }
    self.url = url
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = workload.tasks
    // Every request is to go to the server.
    configuration.urlCache = nil
    if let caFile {
      let data = try Data(contentsOf: URL(fileURLWithPath: caFile))
      configuration.tlsTrustSettings.roots = .only(TLSCertificate.read(data) ?? [])
    }
    session = URLSession(
      configuration: configuration, delegate: workload.kind == .discard ? discarder : nil, delegateQueue: nil)
  }

  func run(_ count: Int, onLoop: Bool) async throws {
    try await withTaskExecutorPreference(onLoop ? session.taskExecutor : nil) { try await run(count) }
  }

  private func run(_ count: Int) async throws {
    guard workload.tasks > 1 else {
      for _ in 0..<count { try await request() }
      return
    }
    let left = Counter(count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<workload.tasks {
        group.addTask { while left.take() { try await request() } }
      }
      try await group.waitForAll()
    }
  }

  private func request() async throws {
    let received: Int
    switch workload.kind {
    case .data:
      let (data, response) = try await session.data(from: url)
      guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw Failure(description: "\(response)") }
      received = data.count
    case .discard: received = try await discarder.load(url, by: session)
    case .bytes:
      received = try await Self.count(session.bytes(from: url).0)
    case .download:
      let (file, _) = try await session.download(from: url)
      received = (try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int) ?? 0
      try FileManager.default.removeItem(at: file)
    }
    guard received == workload.bodyBytes else { throw Failure(description: "\(received) bytes of body") }
  }
}

extension Client {
  @concurrent
  static func count(_ bytes: URLSession.AsyncBytes) async throws -> Int {
    var count = 0
    for try await _ in bytes { count += 1 }
    return count
  }
}

final class Counter: Sendable {
  private let left: Atomic<Int>
  init(_ count: Int) { left = Atomic(count) }
  func take() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}

let onLoop = CommandLine.arguments.contains("--loop")
let arguments = CommandLine.arguments.filter { $0 != "--loop" }
guard arguments.count >= 5, let workload = Workload.all[arguments[1]], let requests = Int(arguments[4]) else {
  print("{\"unsupported\":true}")
  exit(0)
}
// The main thread waits, and the calls come from Swift's pool, as in a server.
Task.detached {
  do {
    let client = try Client(
      workload, host: arguments[2], port: arguments[3], caFile: arguments.count > 5 ? arguments[5] : nil)
    try await client.run(min(requests / 10, 1_000), onLoop: onLoop)
    let (cpu, start) = (ProcessUsage.cpuMicroseconds, ContinuousClock.now)
    try await client.run(requests, onLoop: onLoop)
    let wall = Int((ContinuousClock.now - start) / .microseconds(1))
    print(
      "{\"requests\":\(requests),\"cpu_us\":\(ProcessUsage.cpuMicroseconds - cpu),\"wall_us\":\(wall),"
        + "\"bytes\":\(requests * workload.bodyBytes),\"peak_rss_kib\":\(ProcessUsage.peakRSSKiB)}")
    exit(0)
  } catch {
    FileHandle.standardError.write(Data("larkspur-session-bench: \(error)\n".utf8))
    exit(1)
  }
}
DispatchSemaphore(value: 0).wait()
