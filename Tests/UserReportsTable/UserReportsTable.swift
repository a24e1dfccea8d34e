// Prints the outcomes of two builds of the scenarios as a table, in the form of the documentation.
//
// Usage: `UserReportsTable FOUNDATION-NETWORKING-PROGRAM LARKSPUR-PROGRAM [MEMORY-BYTES]`.

import Foundation
import UserReportRunner

@main struct UserReportsTable {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count >= 3 else {
      print("usage: UserReportsTable FOUNDATION-NETWORKING-PROGRAM LARKSPUR-PROGRAM [MEMORY-BYTES]")
      exit(2)
    }
    let bytes = arguments.count > 3 ? Int(arguments[3]) ?? 2 << 30 : 2 << 30
    let runners = arguments[1...2].map {
      UserReportRunner(program: URL(filePath: $0), memoryBytes: bytes, secondsMax: 30)
    }
    print("| scenario | what should happen | FoundationNetworking | Larkspur |")
    print("|---|---|---|---|")
    for scenario in try runners[1].scenarios() {
      let outcomes = try runners.map { try $0.run(scenario).brief }
      print("| `\(scenario.name)` | \(scenario.words) | \(outcomes[0]) | \(outcomes[1]) |")
      fflush(nil)
    }
  }
}

extension UserReportRunner.Outcome {
  /// The outcome's description, shortened for one cell of the table.
  fileprivate var brief: String {
    let text = description.replacing("|", with: "/")
    return text.count > 120 ? text.prefix(117) + "..." : text
  }
}
