// The FoundationNetworking peer: the workloads by URLSession, as programs for Linux use it today.
//
// Called as PROGRAM WORKLOAD HOST PORT REQUESTS [CA_FILE]. The whole contract is in Benchmarks/README.md. The CA file
// is ignored: on Linux FoundationNetworking trusts the system's file and no other (the variable
// URLSessionCertificateAuthorityInfoFile is for Android), so compare mounts the CA file in the place of the system's.

import Foundation
import FoundationNetworking

struct Workload {
  var path: String
  var bodyBytes: Int
  var connections: Int
  var isDownload = false
  var isIntoFile = false
  var isTLS = false
  /// Whether each request has a connection of its own.
  var isFresh = false
  /// Whether the session has the unchanged default configuration.
  var isDefault = false
  /// The length of the request's body: a file if it is large, and JSON otherwise.
  var uploadBytes = 0

  /// The size of the bodies that the workload measures.
  var movedBytes: Int { uploadBytes > 0 ? uploadBytes : bodyBytes }
  var sendsFile: Bool { uploadBytes == 1 << 30 }

  static let all: [String: Workload] = [
    "serial-tiny": Workload(path: "/tiny", bodyBytes: 13, connections: 1),
    "concurrent-tiny": Workload(path: "/tiny", bodyBytes: 13, connections: 64),
    "concurrent-100k": Workload(path: "/100k", bodyBytes: 100 << 10, connections: 64),
    "download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, connections: 1, isDownload: true),
    "download-1g-file": Workload(path: "/1g", bodyBytes: 1 << 30, connections: 1, isDownload: true, isIntoFile: true),
    "download-1g-memory": Workload(path: "/1g", bodyBytes: 1 << 30, connections: 1),
    // FoundationNetworking does not pipeline, so these requests use 16 connections.
    "pipelined-tiny": Workload(path: "/tiny", bodyBytes: 13, connections: 16),
    "new-tiny": Workload(path: "/tiny", bodyBytes: 13, connections: 1, isFresh: true),
    "https-serial-tiny": Workload(path: "/tiny", bodyBytes: 13, connections: 1, isTLS: true),
    "https-concurrent-tiny": Workload(path: "/tiny", bodyBytes: 13, connections: 64, isTLS: true),
    "https-download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, connections: 1, isDownload: true, isTLS: true),
    "https-new-full": Workload(path: "/tiny", bodyBytes: 13, connections: 1, isTLS: true, isFresh: true),
    "https-new-full-bundle": Workload(path: "/tiny", bodyBytes: 13, connections: 1, isTLS: true, isFresh: true),
    "api-json-serial": Workload(path: "/api/no-store/items.json", bodyBytes: 2_300, connections: 1, isDefault: true),
    "api-json-concurrent": Workload(
      path: "/api/no-store/items.json", bodyBytes: 2_300, connections: 64, isDefault: true),
    "api-etag-serial": Workload(path: "/api/etag/items.json", bodyBytes: 2_300, connections: 1, isDefault: true),
    "api-etag-concurrent": Workload(path: "/api/etag/items.json", bodyBytes: 2_300, connections: 64, isDefault: true),
    "upload-json": Workload(
      path: "/upload/1024", bodyBytes: 17, connections: 1, isDefault: true, uploadBytes: 1 << 10),
    "upload-1g": Workload(
      path: "/upload/1073741824", bodyBytes: 17, connections: 1, isDefault: true, uploadBytes: 1 << 30),
    "https-upload-1g": Workload(
      path: "/upload/1073741824", bodyBytes: 17, connections: 1, isTLS: true, isDefault: true, uploadBytes: 1 << 30),
  ]

  /// The unsupported workloads: FoundationNetworking never resumes a session, and always reuses an idle connection.
  static let unsupported: Set = ["https-new-resumed", "idle", "https-idle"]
}

func fail(_ message: String) -> Never {
  FileHandle.standardError.write(Data((message + "\n").utf8))
  exit(1)
}

/// A way of making requests. `run` makes `requests` of them and returns the number of body bytes moved.
protocol Runner {
  func run(_ requests: Int) -> Int
}

/// Data tasks with completion handlers, each of which starts the next task.
///
/// Unchecked: every stored variable is touched only on the session's delegate queue, which is serial, or by `run` while
/// no task exists.
final class HandlerRunner: Runner, @unchecked Sendable {
  private let session: URLSession
  private let request: URLRequest
  private let workload: Workload
  private let finished = DispatchSemaphore(value: 0)
  private var unsent = 0
  private var unfinished = 0
  private var bytes = 0

  init(url: URL, workload: Workload, configuration: URLSessionConfiguration) {
    var request = URLRequest(url: url)
    // The only way to keep URLSession from reusing the connection.
    if workload.isFresh { request.setValue("close", forHTTPHeaderField: "Connection") }
    if workload.uploadBytes > 0 {
      request.httpMethod = "POST"
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      let (begin, end) = (Data(#"{"name":"Item","note":""#.utf8), Data(#""}"#.utf8))
      let fill = Data(repeating: UInt8(ascii: "."), count: workload.uploadBytes - begin.count - end.count)
      request.httpBody = begin + fill + end
    }
    self.request = request
    self.workload = workload
    session = URLSession(configuration: configuration)
  }

  func run(_ requests: Int) -> Int {
    guard requests > 0 else { return 0 }
    unsent = requests
    unfinished = requests
    bytes = 0
    // Started on the delegate queue: on this thread the first completions would race with the last starts.
    session.delegateQueue.addOperation { [self] in
      for _ in 0..<min(workload.connections, requests) { startNext() }
    }
    finished.wait()
    return bytes
  }

  private func startNext() {
    unsent -= 1
    session.dataTask(with: request) { [self] data, response, error in
      if let error { fail("task: \(error)") }
      let status = (response as? HTTPURLResponse)?.statusCode
      guard status == 200 else { fail("the status is \(status ?? 0)") }
      guard let data, data.count == workload.bodyBytes else { fail("the body has \(data?.count ?? 0) bytes") }
      bytes += workload.movedBytes
      unfinished -= 1
      if unsent > 0 { startNext() }
      if unfinished == 0 { finished.signal() }
    }.resume()
  }
}

/// Data tasks with a delegate that counts the body and discards it, so that nothing is kept in memory.
///
/// Unchecked: every stored variable is touched only on the session's delegate queue, which is serial, or by `run` while
/// no task exists.
final class DiscardingRunner: NSObject, Runner, URLSessionDataDelegate, @unchecked Sendable {
  private let url: URL
  private let workload: Workload
  private let configuration: URLSessionConfiguration
  private let finished = DispatchSemaphore(value: 0)
  private var received = 0

  init(url: URL, workload: Workload, configuration: URLSessionConfiguration) {
    self.url = url
    self.workload = workload
    self.configuration = configuration
  }

  func run(_ requests: Int) -> Int {
    guard requests > 0 else { return 0 }
    let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    for _ in 0..<requests {
      received = 0
      session.dataTask(with: url).resume()
      finished.wait()
    }
    return requests * workload.bodyBytes
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    let status = (response as? HTTPURLResponse)?.statusCode
    guard status == 200 else { fail("the status is \(status ?? 0)") }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    received += data.count
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    if let error { fail("task: \(error)") }
    guard received == workload.bodyBytes else { fail("the body has \(received) bytes") }
    finished.signal()
  }
}

/// Download tasks with completion handlers, one after the other.
struct FileRunner: Runner {
  let url: URL
  let workload: Workload
  let session: URLSession

  func run(_ requests: Int) -> Int {
    let finished = DispatchSemaphore(value: 0)
    for _ in 0..<requests {
      session.downloadTask(with: url) { file, response, error in
        if let error { fail("task: \(error)") }
        let status = (response as? HTTPURLResponse)?.statusCode
        guard status == 200, let file else { fail("the status is \(status ?? 0)") }
        let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
        guard attributes?[.size] as? Int == workload.bodyBytes else { fail("the file has other bytes") }
        try? FileManager.default.removeItem(at: file)
        finished.signal()
      }.resume()
      finished.wait()
    }
    return requests * workload.bodyBytes
  }
}

/// Upload tasks with completion handlers, one after the other.
struct UploadRunner: Runner {
  let url: URL
  let workload: Workload
  let session: URLSession

  func run(_ requests: Int) -> Int {
    let finished = DispatchSemaphore(value: 0)
    let file = URL(fileURLWithPath: ProcessInfo.processInfo.environment["UPLOAD_FILE"] ?? "")
    var request = URLRequest(url: url)
    request.httpMethod = "PUT"
    for _ in 0..<requests {
      session.uploadTask(with: request, fromFile: file) { data, response, error in
        if let error { fail("task: \(error)") }
        let status = (response as? HTTPURLResponse)?.statusCode
        guard status == 200, data?.count == workload.bodyBytes else { fail("the status is \(status ?? 0)") }
        finished.signal()
      }.resume()
      finished.wait()
    }
    return requests * workload.uploadBytes
  }
}

struct Instant {
  var cpuMicroseconds: Int
  var wallMicroseconds: Int

  static var now: Instant {
    var usage = rusage()
    var clock = timespec()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    clock_gettime(CLOCK_MONOTONIC, &clock)
    return Instant(
      cpuMicroseconds: (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000
        + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec,
      wallMicroseconds: clock.tv_sec * 1_000_000 + clock.tv_nsec / 1000)
  }
}

/// Reads the peak from `VmHWM`. `ru_maxrss` survives an exec, so it could be the peak of the parent process.
func peakResidentKiB() -> Int {
  guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
    let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
    let value = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Int($0) })
  else { fail("cannot read VmHWM from /proc/self/status") }
  return value
}

let arguments = CommandLine.arguments
if arguments.count > 1, Workload.unsupported.contains(arguments[1]) {
  print("{\"unsupported\":true}")
  exit(0)
}
guard 5...6 ~= arguments.count, let workload = Workload.all[arguments[1]],
  let url = URL(string: "\(workload.isTLS ? "https" : "http")://\(arguments[2]):\(arguments[3])\(workload.path)"),
  let requests = Int(arguments[4]), requests > 0
else { fail("usage: \(arguments[0]) WORKLOAD HOST PORT REQUESTS [CA_FILE]") }

let configuration = workload.isDefault ? URLSessionConfiguration.default : .ephemeral
if !workload.isDefault {
  // The cheapest configuration that FoundationNetworking offers: no cache and no cookies to search for each request.
  configuration.urlCache = nil
  configuration.httpCookieStorage = nil
  configuration.httpMaximumConnectionsPerHost = workload.connections
}

let runner: any Runner
if workload.sendsFile {
  runner = UploadRunner(url: url, workload: workload, session: URLSession(configuration: configuration))
} else if workload.isIntoFile {
  runner = FileRunner(url: url, workload: workload, session: URLSession(configuration: configuration))
} else if workload.isDownload {
  runner = DiscardingRunner(url: url, workload: workload, configuration: configuration)
} else {
  runner = HandlerRunner(url: url, workload: workload, configuration: configuration)
}

// compare subtracts run lengths and so relies on this exact rule.
if !workload.isDownload, !workload.sendsFile { _ = runner.run(min(requests / 10, 1000)) }
let start = Instant.now
let bytes = runner.run(requests)
let end = Instant.now

print(
  """
  {"requests":\(requests),"cpu_us":\(end.cpuMicroseconds - start.cpuMicroseconds),\
  "wall_us":\(end.wallMicroseconds - start.wallMicroseconds),"bytes":\(bytes),"peak_rss_kib":\(peakResidentKiB())}
  """)
