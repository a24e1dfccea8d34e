import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// What sessions hold of the machine. Each check is a program of its own: other tests would be in its figures.
@Suite(.serialized, .timeLimit(.minutes(5)), .ownThread) struct SessionFootprintTests {
  /// The program's words end up in the failure.
  private func run(_ name: String, _ count: Int) async throws {
    let server = try TestServer()
    let tests = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let process = Process()
    process.executableURL = tests.deletingLastPathComponent().appending(path: "BehaviourProbe")
    process.arguments = [name, server.url(), "\(count)"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    await withCheckedContinuation { continuation in
      process.terminationHandler = { _ in continuation.resume() }
      do {
        try process.run()
      } catch {
        Issue.record("\(error)")
        continuation.resume()
      }
    }
    // A few lines, which fit into the pipe.
    let words = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    #expect(process.terminationStatus == 0, "\(name): \(words)")
  }

  @Test func aSessionForEachRequest() async throws { try await run("sessions", 10_000) }

  @Test func aSlowDelegate() async throws { try await run("delegate", 512 << 20) }

  /// A reader of single bytes is slow by itself.
  @Test func aSlowReader() async throws { try await run("bytes", 12 << 20) }
}
