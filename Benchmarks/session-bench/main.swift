// Larkspur's URLSession as a client of `Benchmarks/compare`: the public API, awaited as in a program.
// Called as `larkspur-session-bench [--loop | --delegate | --source] WORKLOAD HOST PORT REQUESTS [CA_FILE]`; the
// contract is in Benchmarks/README.md. With `--loop` the calls are awaited on the session's own executor. With
// `--delegate` tasks replace the calls, and their responses go to a delegate. With `--source` events come from an event
// source.

import BenchmarkUsage
import Dispatch
import Foundation
import Larkspur

enum Form: String {
  case calls
  case loop = "--loop"
  case delegate = "--delegate"
  case source = "--source"

  func offers(_ workload: Workload) -> Bool {
    switch self {
    case .calls: true
    case .loop: !workload.isPaced
    case .delegate: (workload.kind == .data && !workload.isPaced) || workload.kind == .uploadData
    case .source: workload.kind == .events
    }
  }
}

struct Client: Sendable {
  let workload: Workload
  let form: Form
  let url: URL
  let request: URLRequest
  let upload: Data
  let session: URLSession
  let discarder = Discarder()
  let collector: Collector
  let echo: Echo?
  let events: EventStreams

  init(_ workload: Workload, _ form: Form, host: String, port: String, caFile: String?) throws {
    self.workload = workload
    self.form = form
    url = try workload.url(host: host, port: port)
    request = workload.request(to: url)
    upload = Data(workload.upload.utf8)
    collector = Collector(workload, request)
    let delegate: (any URLSessionDelegate)? =
      form == .delegate ? collector : workload.kind == .discard ? discarder : nil
    session = URLSession(
      configuration: try workload.configuration(caFile: caFile), delegate: delegate, delegateQueue: nil)
    echo = workload.kind == .echo ? Echo(workload, to: url, by: session) : nil
    events = EventStreams(url: url, session: session)
  }

  /// Opens the WebSockets of the workload, if it has any. Other connections open with their first request.
  func open() async throws { try await echo?.open() }

  func run(_ count: Int) async throws -> [Int] {
    if workload.isPaced { return try await Pace.latencies(of: count, by: load) }
    switch form {
    case .calls, .source: try await runCalls(count)
    case .loop: try await withTaskExecutorPreference(session.taskExecutor) { try await runCalls(count) }
    case .delegate: try await collector.run(count, by: session)
    }
    return []
  }

  private func runCalls(_ count: Int) async throws {
    if let echo { return try await echo.run(count) }
    if workload.kind == .events {
      return try await form == .source ? events.readSource(count) : events.readBytes(count)
    }
    try await workload.makeRequests(count, by: load)
  }

  @Sendable private func load() async throws {
    let received: Int
    switch workload.kind {
    case .data: received = try Self.count(try await session.data(from: url))
    case .uploadData: received = try Self.count(try await session.upload(for: request, from: upload))
    case .uploadFile:
      let file = URL(fileURLWithPath: ProcessInfo.processInfo.environment["UPLOAD_FILE"] ?? "")
      received = try Self.count(try await session.upload(for: request, fromFile: file))
    case .discard: received = try await discarder.load(url, by: session)
    case .bytes:
      received = try await Self.count(session.bytes(from: url).0)
    case .download:
      let (file, _) = try await session.download(from: url)
      received = (try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int) ?? 0
      try FileManager.default.removeItem(at: file)
    case .echo, .events: throw Failure(description: "not a workload of requests")
    }
    guard received == workload.bodyBytes else { throw Failure(description: "\(received) bytes of body") }
  }
}

extension Client {
  static func count(_ result: (Data, URLResponse)) throws -> Int {
    guard (result.1 as? HTTPURLResponse)?.statusCode == 200 else { throw Failure(description: "\(result.1)") }
    return result.0.count
  }

  @concurrent
  static func count(_ bytes: URLSession.AsyncBytes) async throws -> Int {
    var count = 0
    for try await _ in bytes { count += 1 }
    return count
  }
}

let form = CommandLine.arguments.lazy.compactMap(Form.init).first ?? .calls
let arguments = CommandLine.arguments.filter { Form(rawValue: $0) == nil }
guard arguments.count >= 5, let workload = Workload.all[arguments[1]], let requests = Int(arguments[4]),
  form.offers(workload)
else {
  print("{\"unsupported\":true}")
  exit(0)
}
// The main thread only waits. The calls come from Swift's thread pool, as in a server.
Task.detached {
  do {
    let client = try Client(
      workload, form, host: arguments[2], port: arguments[3], caFile: arguments.count > 5 ? arguments[5] : nil)
    try await client.open()
    try await workload.measure(requests, client.run)
    exit(0)
  } catch {
    FileHandle.standardError.write(Data("larkspur-session-bench: \(error)\n".utf8))
    exit(1)
  }
}
DispatchSemaphore(value: 0).wait()
