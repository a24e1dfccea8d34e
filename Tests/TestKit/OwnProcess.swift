import Dispatch
import Foundation
import Testing

/// Runs each test in a process of its own: what it leaves to the threads of Swift's pool ends with it.
///
/// The process is this program once more, with a filter for the one test. It runs all of a test's cases.
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
    let (status, words) = try await run(arguments)
    guard status == 0 else {
      Issue.record("its process ended with \(status):\n\(words.suffix(8000))")
      return
    }
    // It may have found that this machine cannot do what it needs.
    let reason = words.split(separator: "\n").first { $0.hasPrefix("skipped: ") }
    if let reason { try Test.cancel("\(reason)") }
  }

  /// How it ended, and what it said.
  private func run(_ arguments: [String]) async throws -> (Int32, String) {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging([Self.mark: "1"]) { $1 }
    process.standardOutput = output
    process.standardError = output
    try process.run()
    nonisolated(unsafe) let (running, end) = (process, output.fileHandleForReading)
    // It blocks: not on a thread of the pool.
    return await withCheckedContinuation { continuation in
      DispatchQueue(label: "own-process").async {
        let words = String(decoding: end.readDataToEndOfFile(), as: UTF8.self)
        running.waitUntilExit()
        continuation.resume(returning: (running.terminationStatus, words))
      }
    }
  }
}

extension Trait where Self == OwnProcess {
  /// For tests that change the process that they run in.
  public static var ownProcess: Self { OwnProcess() }
}
