import Foundation
import Larkspur
import Loading
import Untouched

/// A program whose own code imports `Larkspur` and whose packages import `FoundationNetworking`: both names denote one
/// set of types.
@main struct Program {
  static func main() async throws {
    guard let server = CommandLine.arguments.last.flatMap(URL.init(string:)) else { exit(2) }
    var problems = try await Loading(server: server).problems()
    let request: NetworkRequest = URLRequest(url: server.appending(path: "text"))
    let session: URLSession = makeSession(.ephemeral)
    if try await session.data(for: request).0.count != 5 { problems.append("both names") }
    for problem in problems { print(problem) }
    exit(problems.isEmpty ? 0 : 1)
  }
}
