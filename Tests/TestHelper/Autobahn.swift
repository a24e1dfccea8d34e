// A client of Autobahn's fuzzing server, in a process of its own.
//
//   TestHelper autobahn run URL AGENT [ROOTS.pem]    runs all cases of the server at URL, which has no path, under the
//                                                    agent's name, and lets the server write its reports. ROOTS are
//                                                    trusted for wss
//   TestHelper autobahn report FILE                  prints the cases in the index of the reports whose behavior is not
//                                                    good, and the number of all cases in the last line

import Foundation
import Larkspur

func runAutobahn(_ arguments: [String]) async throws {
  switch (arguments.first, arguments.count) {
  case ("run"?, 3...4):
    let configuration = URLSessionConfiguration.ephemeral
    if arguments.count == 4 {
      let data = FileManager.default.contents(atPath: arguments[3]) ?? Data()
      guard let roots = TLSCertificate.read(data) else { throw Failure.wrongArguments }
      configuration.tlsTrustSettings.roots = .only(roots)
    }
    let client = AutobahnClient(
      session: URLSession(configuration: configuration), server: arguments[1], agent: arguments[2])
    try await client.run()
  case ("report"?, 2):
    let report = try AutobahnReport(Data(contentsOf: URL(filePath: arguments[1])))
    for fault in report.faults { say(fault) }
    say("\(report.count)")
  default: throw Failure.wrongArguments
  }
}

/// An echo of each message, for one case after the other.
private struct AutobahnClient: Sendable {
  let session: URLSession
  /// The server's URL, without a path.
  let server: String
  let agent: String

  /// The largest message of the cases has 16 MiB.
  private static let messageBytesMax = 64 << 20

  /// Runs all cases, and returns when the server has written its reports.
  func run() async throws {
    guard case .string(let text) = try await socket("getCaseCount").receive(), let count = Int(text), count > 0 else {
      throw Failure("the server has no cases")
    }
    for number in 1...count { await echo(over: try socket("runCase?case=\(number)&agent=\(agent)")) }
    // The server writes the reports before it closes.
    await echo(over: try socket("updateReports?agent=\(agent)"))
  }

  private func socket(_ target: String) throws -> URLSessionWebSocketTask {
    guard let url = URL(string: "\(server)/\(target)") else { throw Failure.wrongArguments }
    let socket = session.webSocketTask(with: url)
    socket.maximumMessageSize = Self.messageBytesMax
    socket.resume()
    return socket
  }

  /// Sends each message back until the connection ends. In most cases the server ends it; in the others this side has
  /// to.
  private func echo(over socket: URLSessionWebSocketTask) async {
    do {
      while true { try await socket.send(try await socket.receive()) }
    } catch {
      // The server's report says whether the end was right.
    }
  }
}

/// The index of the reports of Autobahn's fuzzing server.
private struct AutobahnReport {
  private struct Outcome: Decodable {
    var behavior: String
    var behaviorClose: String

    var isGood: Bool {
      [behavior, behaviorClose].allSatisfy { ["OK", "NON-STRICT", "INFORMATIONAL"].contains($0) }
    }
  }

  /// The cases whose behavior is not good: the case, its behavior, and that of the end of the connection.
  let faults: [String]
  /// The number of all cases.
  let count: Int

  init(_ index: Data) throws {
    let agents = try JSONDecoder().decode([String: [String: Outcome]].self, from: index)
    let cases = agents.values.flatMap { $0 }.sorted { $0.key.compare($1.key, options: .numeric) == .orderedAscending }
    faults = cases.filter { !$0.value.isGood }.map { "\($0.key) \($0.value.behavior) \($0.value.behaviorClose)" }
    count = cases.count
  }
}
