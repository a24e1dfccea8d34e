import Dispatch
import Foundation
import Testing

/// Runs each test in a process of its own, so that the state that a test leaves in the threads of Swift's pool ends
/// with it.
///
/// The process runs this program again with a filter for the one test, and runs all of the test's cases.
public struct OwnProcess: TestTrait, SuiteTrait, TestScoping {
  public let isRecursive = true

  /// Set in the test's own process.
  private static let mark = "LARKSPUR_TEST_PROCESS"

  public func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
    let isThere = ProcessInfo.processInfo.environment[Self.mark] != nil
    return isThere || test.isSuite || testCase != nil ? nil : self
  }

  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    let arguments = ["--testing-library", "swift-testing", "--filter", "^\\Q\(test.id)\\E$"]
    let (status, text) = try await run(arguments)
    guard status == 0 else {
      Issue.record("its process ended with \(status):\n\(text.suffix(8000))")
      return
    }
    // The test may have found that this machine lacks what it needs, and cancelled itself.
    let reason = text.split(separator: "\n").first { $0.hasPrefix("skipped: ") }
    if let reason { try Test.cancel("\(reason)") }
  }

  /// Runs this program in a child process.
  ///
  /// - Returns: The child's exit status and its output.
  private func run(_ arguments: [String]) async throws -> (Int32, String) {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging([Self.mark: "1"]) { $1 }
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let end = output.fileHandleForReading
    // Reading blocks, so it runs on a dispatch queue instead of the pool.
    return await withCheckedContinuation { continuation in
      DispatchQueue(label: "own-process").async {
        let text = String(decoding: end.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        continuation.resume(returning: (process.terminationStatus, text))
      }
    }
  }
}

extension Trait where Self == OwnProcess {
  /// The trait for tests that change the process in which they run.
  public static var ownProcess: Self { OwnProcess() }
}
