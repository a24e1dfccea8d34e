import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// What stays behind when much happens, or goes wrong. Each check is a program of its own: other tests would be in its
/// figures.
@Suite(.tags(.slow), .serialized, .ownThread) struct LeakTests {
  /// The program's words end up in the failure.
  private func run(_ program: String, _ arguments: [String]) throws {
    let tests = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let process = Process()
    process.executableURL = tests.deletingLastPathComponent().appending(path: program)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let words = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(program) \(arguments): \(words)")
  }

  private var seed: String { "\(UInt64.random(in: 1...1_000_000))" }

  /// In a process of its own, because the limit of descriptors is the process's.
  @Test func aShortageOfDescriptors() throws {
    let servers = try (0..<3).map { _ in try TestServer() }
    try run("DescriptorShortage", servers.map { "\($0.port)" })
  }

  @Test func handshakesThatFail() throws { try run("HandshakeLeaks", [seed]) }

  /// A few per cent of what the program does by itself.
  @Test func requestsAndCancellationsAndConnections() throws { try run("Soak", ["30000", "1500", "600", seed]) }

  /// Bodies of 256 MiB, of the ten GiB that the program moves by itself.
  @Test func largeBodies() throws { try run("Soak", ["stream", "268435456"]) }
}
