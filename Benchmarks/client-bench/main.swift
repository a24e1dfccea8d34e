// Larkspur's client without Foundation as a client of `Benchmarks/compare`: the public API, awaited as in a program.
// Called as `larkspur-client-bench [--loop] WORKLOAD HOST PORT REQUESTS [CA_FILE]`; the contract is in
// Benchmarks/README.md. With `--loop` the calls are awaited on the client's own executor.

import BenchmarkUsage
import Glibc
import LarkspurClient

struct Client: Sendable {
  let workload: Workload
  let url: String
  let request: HTTPClient.Request
  let client: HTTPClient
  let isOnLoop: Bool

  init(_ workload: Workload, host: String, port: String, caFile: String?, isOnLoop: Bool) throws {
    self.workload = workload
    self.isOnLoop = isOnLoop
    url = "\(workload.isSecure ? "https" : "http")://\(host):\(port)\(workload.path)"
    var request = HTTPClient.Request(url)
    switch workload.kind {
    case .uploadData:
      request.method = "POST"
      request.fields = [Field("Content-Type", "application/json")]
      request.body = .text(workload.upload)
    case .uploadFile:
      request.method = "PUT"
      request.body = .file(getenv("UPLOAD_FILE").map { String(cString: $0) } ?? "")
    case .data, .discard, .bytes, .download, .echo, .events: break
    }
    self.request = request
    var options = HTTPClient.Options()
    if workload.isDefault {
      options.keepsCookies = true
    } else {
      options.connectionsPerHostMax = workload.tasks
    }
    if let caFile { options.tls.roots = .only(Certificate.read(try Self.content(of: caFile)) ?? []) }
    client = HTTPClient(options)
  }

  private static func content(of path: String) throws -> [UInt8] {
    guard let file = fopen(path, "r") else { throw Failure(description: "\(path) cannot be read") }
    defer { fclose(file) }
    var content = [UInt8](repeating: 0, count: 1 << 20)
    content.removeLast(content.count - fread(&content, 1, content.count, file))
    return content
  }

  /// Whether the client has what the workload is about.
  static func offers(_ workload: Workload) -> Bool {
    switch workload.kind {
    case .data, .discard, .uploadData, .uploadFile, .events: true
    case .bytes, .download, .echo: false
    }
  }

  func run(_ count: Int) async throws -> [Int] {
    if workload.isPaced { return try await Pace.latencies(of: count, by: load) }
    try await withTaskExecutorPreference(isOnLoop ? client.taskExecutor : nil) {
      guard workload.kind == .events else { return try await workload.makeRequests(count, by: load) }
      try await readEvents(count)
    }
    return []
  }

  @Sendable private func load() async throws {
    let discards = workload.kind == .discard
    let received = try await client.perform(request) { response in
      guard response.status == 200 else { throw Failure(description: "the status is \(response.status)") }
      guard discards else { return try await response.body.collect(upTo: workload.bodyBytes).count }
      var count = 0
      for try await piece in response.body { count += piece.count }
      return count
    }
    guard received == workload.bodyBytes else { throw Failure(description: "\(received) bytes of body") }
  }

  private func readEvents(_ count: Int) async throws {
    guard count > 0 else { return }
    let received = try await client.get("\(url)/\(count)") { response in
      guard response.status == 200 else { throw Failure(description: "the status is \(response.status)") }
      var received = 0
      for try await event in response.body.events() {
        guard event.data.utf8.count == Workload.eventDataBytes else {
          throw Failure(description: "an event with data \(event.data)")
        }
        received += 1
      }
      return received
    }
    guard received == count else { throw Failure(description: "\(received) events") }
  }
}

var arguments = CommandLine.arguments
let isOnLoop = arguments.dropFirst().first == "--loop"
if isOnLoop { arguments.remove(at: 1) }
guard arguments.count >= 5, let workload = Workload.all[arguments[1]], let requests = Int(arguments[4]),
  Client.offers(workload)
else {
  print("{\"unsupported\":true}")
  exit(0)
}
do {
  let client = try Client(
    workload, host: arguments[2], port: arguments[3], caFile: arguments.count > 5 ? arguments[5] : nil,
    isOnLoop: isOnLoop)
  // The calls come from Swift's thread pool, as in a server.
  try await Task.detached { try await workload.measure(requests, client.run) }.value
} catch {
  let message = Array("larkspur-client-bench: \(error)\n".utf8)
  write(STDERR_FILENO, message, message.count)
  exit(1)
}
