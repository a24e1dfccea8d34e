// Problems that users report of FoundationNetworking, each as a scenario that passes or fails. One source is compiled
// against FoundationNetworking with `-DFOUNDATION_NETWORKING`, and against Larkspur without.
//
// Usage: `UserReports list`, or `UserReports NAME URL` with the URL of a server that has the runner's routes. Exits
// with 0 if the scenario behaves as documented, and otherwise with 1 and a message. The caller has to detect crashes
// and hangs.

import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

struct Scenario {
  let name: String
  /// The expected behavior, in one line.
  let title: String
  let run: @Sendable (TestSite) async throws -> Void
}

/// The server's address.
struct TestSite: Sendable {
  let base: URL

  func url(_ path: String) throws -> URL {
    guard let url = URL(string: base.absoluteString + path) else { throw Complaint("\(path) is no path") }
    return url
  }

  func request(_ path: String, method: String = "GET") throws -> URLRequest {
    var request = URLRequest(url: try url(path))
    request.httpMethod = method
    return request
  }
}

/// A deviation from the documented behavior.
struct Complaint: Error, CustomStringConvertible {
  let description: String

  init(_ message: String) { description = message }
}

func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
  if !condition { throw Complaint(message()) }
}

@main struct UserReports {
  static let scenarios = storms + breaks + loading + timing + bodies + files + authentication + protocols + loads

  static func main() async {
    let arguments = CommandLine.arguments
    if arguments.count == 2, arguments[1] == "list" {
      for scenario in scenarios { print("\(scenario.name)\t\(scenario.title)") }
      return
    }
    guard arguments.count == 3, let base = URL(string: arguments[2]),
      let scenario = scenarios.first(where: { $0.name == arguments[1] })
    else {
      print("usage: UserReports list | UserReports NAME URL")
      exit(2)
    }
    do {
      try await scenario.run(TestSite(base: base))
    } catch {
      print("\(error)")
      exit(1)
    }
  }
}
