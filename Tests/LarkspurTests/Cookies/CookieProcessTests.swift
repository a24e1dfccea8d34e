import Foundation
import Glibc
import LarkspurHTTP
import TestKit
import Testing

@testable import Larkspur

/// Tests cookie files that several processes write, some of which are killed.
@Suite(.serialized, .ownThread) struct CookieProcessTests {
  /// A process that runs a command of `TestHelper`.
  struct Writer {
    let process = Process()
    private let output = Pipe()

    init(
      command: String = "cookie-writer", _ arguments: String..., environment: [String: String]? = nil
    ) throws {
      process.executableURL = try SiblingProcess.program("TestHelper")
      process.arguments = [command] + arguments
      if let environment { process.environment = environment }
      process.standardOutput = output
      try process.run()
    }

    /// Reads `lines` printed numbers.
    ///
    /// - Returns: The last of them, or `nil` if the process ended before.
    func read(lines: Int) -> Int? {
      var text = Data()
      while text.count(where: { $0 == 10 }) < lines {
        let piece = output.fileHandleForReading.availableData
        if piece.isEmpty { return nil }
        text += piece
      }
      return String(decoding: text, as: UTF8.self).split(separator: "\n").last.flatMap { Int($0) }
    }

    func kill() {
      Glibc.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }

    /// Waits for the process to exit.
    ///
    /// - Returns: The exit status.
    func finish() -> Int32 {
      _ = output.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      return process.terminationStatus
    }
  }

  @Test func killedAtAnyMoment() throws {
    var generator = SeededGenerator(for: "cookie writers killed")
    let directory = try TemporaryDirectory()
    let path = directory.url.path
    for round in 0..<25 {
      let writer = try Writer(path, "r\(round)", "1000000")
      let last = try #require(writer.read(lines: Int.random(in: 1...40, using: &generator)))
      writer.kill()
      let bytes = try Data(contentsOf: URL(filePath: directory.path("cookies")))
      guard case .cookies(let cookies) = CookieFile.read(Array(bytes)) else {
        Issue.record("the file is damaged")
        return
      }
      // The two cookies of a write are in the file together, with the number last reported as written or a later one.
      // The cookies of earlier rounds are there, too.
      let pair = cookies.filter { $0.name.hasPrefix("r\(round)-") }.compactMap { Int($0.value) }
      try #require(pair.count == 2 && pair[0] == pair[1] && pair[0] >= last, "\(pair) \(last)")
      #expect(cookies.count == 2 * (round + 1))
    }
  }

  @Test func severalAtOnce() throws {
    let directory = try TemporaryDirectory()
    let writers = try (0..<3).map { try Writer(directory.url.path, "w\($0)", "60") }
    for writer in writers { #expect(writer.finish() == 0) }
    let cookies = CookieDisk(path: directory.url.path).read()
    #expect(cookies.map(\.name).sorted() == (0..<3).flatMap { ["w\($0)-a", "w\($0)-b"] })
    // The last number is written by each process's exit.
    #expect(Set(cookies.map(\.value)) == ["59"])
  }

  /// The shared storage of a program uses the directory that `XDG_DATA_HOME` names.
  @Test func theSharedStorage() throws {
    let directory = try TemporaryDirectory()
    for name in ["first", "second"] {
      let writer = try Writer("-", name, "shared", environment: ["XDG_DATA_HOME": directory.url.path])
      #expect(writer.finish() == 0)
    }
    let cookies = CookieDisk(path: directory.path("TestHelper/larkspur")).read()
    #expect(cookies.map(\.name) == ["first", "second"])
  }
}
