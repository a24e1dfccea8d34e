import Foundation
import TestKit
import Testing
import UserReportRunner

/// What users report of other stacks does not happen with this one. Each scenario is a process of its own.
@Suite(.serialized, .ownThread) struct UserReportTests {
  /// With a smaller body than the table in the documentation was made with.
  private static let memoryBytes = 256 << 20

  private func runner() throws -> UserReportRunner {
    let tests = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let program = tests.deletingLastPathComponent().appending(path: "UserReports")
    return UserReportRunner(program: program, memoryBytes: Self.memoryBytes)
  }

  @Test func everyScenarioPasses() throws {
    let runner = try runner()
    let scenarios = try runner.scenarios()
    #expect(scenarios.count > 20)
    for scenario in scenarios {
      let outcome = try runner.run(scenario)
      #expect(outcome == .passed, "\(scenario.name): \(outcome)")
    }
  }
}
