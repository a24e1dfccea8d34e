// Compares a manager's GET with a bare task's, as clients of `Benchmarks/compare`: JSON, one request after the other,
// each made when the one before has been handled. Called as `larkspur-manager-bench --FORM WORKLOAD HOST PORT
// REQUESTS`.

import AFNetworking
import BenchmarkUsage
import Dispatch
import Foundation

/// The API that makes the requests, and the place where their responses are handled.
enum Form: String {
  /// A data task with a handler.
  case task
  /// A data task with a handler that does not parse the document. The difference to `task` is the cost of parsing.
  case taskUnparsed = "task-unparsed"
  /// A data task whose handler dispatches to the main queue.
  case taskMain = "task-main"
  /// `URLSession.data(from:)`.
  case data
  /// A manager with blocks on the main queue, the default.
  case managerMain = "manager-main"
  /// A manager with blocks on a completion queue.
  case managerQueue = "manager-queue"
  /// A manager's async function.
  case manager
}

struct Workload {
  var path: String
  var bodyBytes: Int
  /// Whether session and manager have the unchanged default configuration.
  var isDefault = false

  static let all: [String: Workload] = [
    "serial-json": Workload(path: "/document.json", bodyBytes: 24),
    "api-json-serial": Workload(path: "/api/no-store/items.json", bodyBytes: 2_300, isDefault: true),
    "api-etag-serial": Workload(path: "/api/etag/items.json", bodyBytes: 2_300, isDefault: true),
  ]

  func check(_ object: Any?) throws {
    let fields = object as? [String: Any]
    guard isDefault ? (fields?["items"] as? [Any])?.count == 20 : fields?["id"] as? Int == 17 else {
      throw URLError(.cannotParseResponse)
    }
  }
}

/// Makes one request at a time, so only the code that handles the current response uses the variables.
final class Client: @unchecked Sendable {
  private let form: Form
  private let workload: Workload
  private let url: URL
  private let session: URLSession
  private let manager: AFHTTPSessionManager
  private var left = 0
  private var isDone: CheckedContinuation<Void, Never>?

  init(_ form: Form, _ workload: Workload, _ url: URL) {
    self.form = form
    self.workload = workload
    self.url = url
    let configuration = workload.isDefault ? URLSessionConfiguration.default : .ephemeral
    if !workload.isDefault { configuration.urlCache = nil }
    session = URLSession(configuration: configuration)
    manager = AFHTTPSessionManager(sessionConfiguration: configuration)
    if form == .managerQueue { manager.completionQueue = DispatchQueue(label: "completion") }
  }

  func run(_ count: Int) async throws {
    switch form {
    case .data: for _ in 0..<count { try workload.check(Self.parse(try await session.data(from: url).0)) }
    case .manager: for _ in 0..<count { try workload.check(try await manager.get(url.absoluteString).value) }
    case .task, .taskUnparsed, .taskMain, .managerMain, .managerQueue:
      left = count
      await withCheckedContinuation { continuation in
        isDone = continuation
        next()
      }
    }
  }

  private func next() {
    guard left > 0 else { return isDone.take()?.resume() ?? () }
    left -= 1
    switch form {
    case .task: session.dataTask(with: url) { [self] data, _, _ in handled(Self.parse(data)) }.resume()
    case .taskUnparsed:
      session.dataTask(with: url) { [self] data, _, error in
        if data == nil { Self.fail(error ?? URLError(.unknown)) }
        next()
      }.resume()
    case .taskMain:
      session.dataTask(with: url) { [self] data, _, _ in
        nonisolated(unsafe) let object = Self.parse(data)
        DispatchQueue.main.async { [self] in handled(object) }
      }.resume()
    default:
      manager.get(url.absoluteString, parameters: nil, headers: nil, progress: nil) { [self] _, object in
        handled(object)
      } failure: { _, error in
        Self.fail(error)
      }
    }
  }

  private func handled(_ object: Any?) {
    do { try workload.check(object) } catch { Self.fail(error) }
    next()
  }

  private static func parse(_ data: Data?) -> Any? {
    data.flatMap { try? JSONSerialization.jsonObject(with: $0) }
  }

  static func fail(_ error: any Error) -> Never {
    FileHandle.standardError.write(Data("larkspur-manager-bench: \(error)\n".utf8))
    exit(1)
  }
}

let arguments = CommandLine.arguments
guard arguments.count >= 6, let form = Form(rawValue: String(arguments[1].dropFirst(2))),
  let workload = Workload.all[arguments[2]], let requests = Int(arguments[5]),
  let url = URL(string: "http://\(arguments[3]):\(arguments[4])\(workload.path)")
else {
  print("{\"unsupported\":true}")
  exit(0)
}
Task.detached {
  do {
    let client = Client(form, workload, url)
    try await client.run(min(requests / 10, 1_000))
    let (cpu, start) = (ProcessUsage.cpuMicroseconds, ContinuousClock.now)
    try await client.run(requests)
    let wall = Int((ContinuousClock.now - start) / .microseconds(1))
    print(
      "{\"requests\":\(requests),\"cpu_us\":\(ProcessUsage.cpuMicroseconds - cpu),\"wall_us\":\(wall),"
        + "\"bytes\":\(requests * workload.bodyBytes),\"peak_rss_kib\":\(ProcessUsage.peakRSSKiB)}")
    exit(0)
  } catch {
    Client.fail(error)
  }
}
RunLoop.main.run()
