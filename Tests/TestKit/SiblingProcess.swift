import Foundation
import Glibc

/// A process of a program of this package that stands beside the tests. It ends with its last user.
package final class SiblingProcess: @unchecked Sendable {
  package struct Failure: Error, Hashable, Sendable {
    package var status: Int32
  }

  private let process = Process()
  private let output = Pipe()

  /// - Parameter environment: Goes over that of this process.
  package init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws {
    let own = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    var folder = own.deletingLastPathComponent()
    // Under `swift test` the program that runs is not the test bundle.
    if !FileManager.default.fileExists(atPath: folder.appending(path: program).path) {
      folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    }
    process.executableURL = folder.appending(path: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = output
    try process.run()
  }

  deinit { kill() }

  /// What it printed until it ended, which must be well.
  package func text() throws -> String {
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw Failure(status: process.terminationStatus)
    }
    return String(decoding: data, as: UTF8.self)
  }

  /// The numbers that it printed until it ended.
  package func numbers() throws -> [Int] { try text().split { $0.isWhitespace }.compactMap { Int($0) } }

  /// Reads until it has printed so many lines. The last one; nil: it has ended before.
  package func read(lines: Int) -> String? {
    var text = Data()
    while text.count(where: { $0 == 10 }) < lines {
      let piece = output.fileHandleForReading.availableData
      if piece.isEmpty { return nil }
      text += piece
    }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").last.map(String.init)
  }

  /// Ends it at once, wherever it is.
  package func kill() {
    guard process.isRunning else { return }
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
