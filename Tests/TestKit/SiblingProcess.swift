import Foundation
import Glibc

/// A child process that runs a command of `TestHelper`. The process ends with its last reference.
package final class SiblingProcess: @unchecked Sendable {
  package struct Failure: Error, Hashable, Sendable {
    package var status: Int32
  }

  private let process = Process()
  private let output = Pipe()

  /// - Parameter environment: Variables that are added to this process's environment, or replace some of it.
  package init(_ command: String, _ arguments: [String], environment: [String: String] = [:]) throws {
    process.executableURL = try Self.program("TestHelper")
    process.arguments = [command] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = output
    try process.run()
  }

  deinit { kill() }

  /// Returns the location of another program of this package, which lies beside the running one.
  package static func program(_ name: String) throws -> URL {
    let own = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let sibling = own.deletingLastPathComponent().appending(path: name)
    if FileManager.default.fileExists(atPath: sibling.path) { return sibling }
    // Under `swift test` the running program is not the test bundle, whose path is the first argument.
    return URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: name)
  }

  /// Returns all output of the process. Blocks until the process has exited.
  ///
  /// - Throws: `Failure` if the process was killed or exits with another status than 0.
  package func text() throws -> String {
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw Failure(status: process.terminationStatus)
    }
    return String(decoding: data, as: UTF8.self)
  }

  /// Returns the numbers in the output of the process. Blocks until the process has exited.
  package func numbers() throws -> [Int] { try text().split { $0.isWhitespace }.compactMap { Int($0) } }

  /// Reads until the process has printed `lines` lines.
  ///
  /// - Returns: The last line, or `nil` if the output ended before.
  package func read(lines: Int) -> String? {
    var text = Data()
    while text.count(where: { $0 == 10 }) < lines {
      let piece = output.fileHandleForReading.availableData
      if piece.isEmpty { return nil }
      text += piece
    }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").last.map(String.init)
  }

  /// Reads until the process has printed `line`.
  ///
  /// - Returns: Whether it has; `false` if the output ended before.
  package func wait(for line: String) -> Bool {
    var text = Data()
    while !text.split(separator: 10).contains(Data(line.utf8)) {
      let piece = output.fileHandleForReading.availableData
      if piece.isEmpty { return false }
      text += piece
    }
    return true
  }

  /// Kills the process at once.
  package func kill() {
    guard process.isRunning else { return }
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
