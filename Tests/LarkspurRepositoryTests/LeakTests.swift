import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// Nothing is left behind after heavy use and after failures. Each check is a process of its own, so that other tests
/// do not affect its figures.
@Suite(.tags(.slow), .serialized, .ownThread) struct LeakTests {
  /// Runs a program, whose output becomes the failure's message.
  private func run(_ program: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = try SiblingProcess.program(program)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(program) \(arguments): \(text)")
  }

  private var seed: String { "\(UInt64.random(in: 1...1_000_000))" }

  /// Runs in a process of its own, because the limit on descriptors belongs to the process.
  @Test func aShortageOfDescriptors() throws {
    let servers = try (0..<3).map { _ in try TestServer() }
    try run("TestHelper", ["descriptor-shortage"] + servers.map { "\($0.port)" })
  }

  /// A blocked thread that cannot wait any longer gets an error, and does not use up a core.
  @Test func waitsThatFail() throws { try run("TestHelper", ["failed-waits"]) }

  @Test func handshakesThatFail() throws { try run("TestHelper", ["handshake-leaks", seed]) }

  /// Runs a few per cent of the program's default load.
  @Test func requestsAndCancellationsAndConnections() throws { try run("Soak", ["30000", "1500", "600", seed]) }

  /// Transfers bodies of 64 MiB instead of the program's default of ten GiB.
  @Test func largeBodies() throws { try run("Soak", ["stream", "\(64 << 20)"]) }
}
