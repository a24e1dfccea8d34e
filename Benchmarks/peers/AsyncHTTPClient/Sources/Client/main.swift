// The async-http-client peer: its asynchronous functions on its own event loop group.
//
// Called as PROGRAM WORKLOAD HOST PORT REQUESTS [CA_FILE]. The whole contract is in Benchmarks/README.md.

import AsyncHTTPClient
import BenchmarkUsage
import Glibc
import NIOSSL

struct Peer: Sendable {
  let workload: Workload
  let url: String
  let client: HTTPClient

  init(_ workload: Workload, host: String, port: String, caFile: String?) {
    self.workload = workload
    url = "\(workload.isSecure ? "https" : "http")://\(host):\(port)\(workload.path)"
    var configuration = HTTPClient.Configuration()
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = workload.tasks
    if let caFile {
      configuration.tlsConfiguration = .makeClientConfiguration()
      configuration.tlsConfiguration?.trustRoots = .file(caFile)
    }
    client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  static func offers(_ workload: Workload) -> Bool {
    (workload.kind == .data || workload.kind == .discard) && !workload.isDefault
  }

  func run(_ count: Int) async throws -> [Int] {
    if workload.isPaced { return try await Pace.latencies(of: count, by: load) }
    try await workload.makeRequests(count, by: load)
    return []
  }

  @Sendable private func load() async throws {
    let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(300))
    var received = 0
    if workload.kind == .data {
      received = try await response.body.collect(upTo: workload.bodyBytes).readableBytes
    } else {
      for try await piece in response.body { received += piece.readableBytes }
    }
    guard response.status == .ok, received == workload.bodyBytes else {
      throw Failure(description: "\(response.status), \(received) bytes of body")
    }
  }
}

let arguments = CommandLine.arguments
guard arguments.count >= 5, let workload = Workload.all[arguments[1]], let requests = Int(arguments[4]),
  Peer.offers(workload)
else {
  print("{\"unsupported\":true}")
  exit(0)
}
let peer = Peer(workload, host: arguments[2], port: arguments[3], caFile: arguments.count > 5 ? arguments[5] : nil)
try await Task.detached { try await workload.measure(requests, peer.run) }.value
exit(0)
