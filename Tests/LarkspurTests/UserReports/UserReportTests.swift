import Foundation
import TestKit
import Testing
import UserReportRunner

/// Runs scenarios from users' reports about other HTTP stacks, each in a process of its own, and checks that Larkspur
/// behaves well.
@Suite(.serialized, .ownThread) struct UserReportTests {
  /// The body size in bytes for memory scenarios. Smaller than the size behind the documentation's table.
  private static let memoryBytes = 128 << 20

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
