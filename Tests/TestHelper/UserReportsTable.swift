// Prints the outcomes of two builds of the scenarios as a table, in the form of the documentation.
//
//   TestHelper user-reports-table FOUNDATION-NETWORKING-PROGRAM LARKSPUR-PROGRAM [MEMORY-BYTES]

import Foundation
import UserReportRunner

func runUserReportsTable(_ arguments: [String]) throws {
  guard arguments.count >= 2 else { throw Failure.wrongArguments }
  let bytes = arguments.count > 2 ? Int(arguments[2]) ?? 2 << 30 : 2 << 30
  let runners = arguments[..<2].map {
    UserReportRunner(program: URL(filePath: $0), memoryBytes: bytes, secondsMax: 30)
  }
  say("| scenario | what should happen | FoundationNetworking | Larkspur |")
  say("|---|---|---|---|")
  for scenario in try runners[1].scenarios() {
    let outcomes = try runners.map { try $0.run(scenario).brief }
    say("| `\(scenario.name)` | \(scenario.title) | \(outcomes[0]) | \(outcomes[1]) |")
  }
}

extension UserReportRunner.Outcome {
  /// The outcome's description, shortened for one cell of the table.
  fileprivate var brief: String {
    let text = description.replacing("|", with: "/")
    return text.count > 120 ? text.prefix(117) + "..." : text
  }
}
