// What users report of FoundationNetworking, each as a scenario that ends well or does not. The same source is compiled
// against it with `-DFOUNDATION_NETWORKING`, and against Larkspur without.
//
// Called as `UserReports list`, or as `UserReports NAME URL` with the URL of a server that has the runner's routes. Exits
// with 0 if all was as documented, and with 1 and words if not. A crash and a hang are for the caller to see.

import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

struct Scenario {
  let name: String
  /// What should happen, in a few words.
  let words: String
  let run: @Sendable (Place) async throws -> Void
}

/// Where the server is.
struct Place: Sendable {
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

/// What was not as documented.
struct Complaint: Error, CustomStringConvertible {
  let description: String

  init(_ words: String) { description = words }
}

func expect(_ condition: Bool, _ words: @autoclosure () -> String) throws {
  if !condition { throw Complaint(words()) }
}

@main struct UserReports {
  static let scenarios = storms + breaks + loading + timing + bodies + files + authentication + protocols + loads

  static func main() async {
    let arguments = CommandLine.arguments
    if arguments.count == 2, arguments[1] == "list" {
      for scenario in scenarios { print("\(scenario.name)\t\(scenario.words)") }
      return
    }
    guard arguments.count == 3, let base = URL(string: arguments[2]),
      let scenario = scenarios.first(where: { $0.name == arguments[1] })
    else {
      print("usage: UserReports list | UserReports NAME URL")
      exit(2)
    }
    do {
      try await scenario.run(Place(base: base))
    } catch {
      print("\(error)")
      exit(1)
    }
  }
}
