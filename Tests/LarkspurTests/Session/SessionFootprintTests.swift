import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// Tests the memory and descriptors that sessions hold. Each check runs in a process of its own, so that other tests do
/// not affect the figures.
@Suite(.serialized, .timeLimit(.minutes(5)), .ownThread) struct SessionFootprintTests {
  /// Runs one check of `TestHelper session-footprint`; its output becomes part of the failure message.
  private func run(_ name: String, _ count: Int) async throws {
    let server = try TestServer()
    let process = Process()
    process.executableURL = try SiblingProcess.program("TestHelper")
    process.arguments = ["session-footprint", name, server.url(), "\(count)"]
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
    // The output has a few lines only, which fit into the pipe's buffer.
    let words = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    #expect(process.terminationStatus == 0, "\(name): \(words)")
  }

  @Test func aSessionForEachRequest() async throws { try await run("sessions", 10_000) }

  @Test func aSlowDelegate() async throws { try await run("delegate", 64 << 20) }

  /// A reader of single bytes is slower than the server.
  @Test func aSlowReader() async throws { try await run("bytes", 12 << 20) }
}
