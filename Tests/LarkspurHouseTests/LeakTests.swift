import Foundation
import Testing

/// What stays behind when much goes wrong. Each check is a program of its own: other tests would be in its figures.
@Suite(.tags(.slow), .serialized) struct LeakTests {
  @Test func handshakesThatFail() throws {
    let tests = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let process = Process()
    process.executableURL = tests.deletingLastPathComponent().appending(path: "HandshakeLeaks")
    let seed = UInt64.random(in: 1...1_000_000)
    process.arguments = ["\(seed)"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let words = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "seed \(seed): \(words)")
  }
}
