import Foundation
import LarkspurTestServer

/// Runs the scenarios of a program, each in a process of its own, so that a scenario that crashes or hangs affects no
/// other.
public struct UserReportRunner: Sendable {
  public struct Scenario: Hashable, Sendable {
    public let name: String
    public let title: String
  }

  public enum Outcome: Hashable, Sendable, CustomStringConvertible {
    case passed
    case failed(String)
    case crashed(signal: Int)
    case hung

    public var description: String {
      switch self {
      case .passed: "passes"
      case .failed(let text): "fails: \(text)"
      case .crashed(let signal): "crashes (signal \(signal))"
      case .hung: "hangs"
      }
    }
  }

  let program: URL
  /// Size of the body in the `memory` scenario, in bytes.
  let memoryBytes: Int
  /// Timeout of a scenario in seconds; a scenario that takes longer counts as hung.
  let secondsMax: Int

  public init(program: URL, memoryBytes: Int, secondsMax: Int = 120) {
    self.program = program
    self.memoryBytes = memoryBytes
    self.secondsMax = secondsMax
  }

  public func scenarios() throws -> [Scenario] {
    let (_, text) = try run(["list"], in: FileManager.default.temporaryDirectory)
    return text.split(separator: "\n").compactMap { line in
      let parts = line.split(separator: "\t")
      return parts.count == 2 ? Scenario(name: String(parts[0]), title: String(parts[1])) : nil
    }
  }

  /// Runs one scenario, with a server and a temporary directory of its own.
  public func run(_ scenario: Scenario) throws -> Outcome {
    let server = try UserReportServer.make(for: scenario.name)
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larkspur-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer {
      server.stop()
      try? FileManager.default.removeItem(at: directory)
    }
    return try run([scenario.name, "http://127.0.0.1:\(server.port)"], in: directory).0
  }

  private func run(_ arguments: [String], in directory: URL) throws -> (Outcome, String) {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    var environment = ProcessInfo.processInfo.environment
    environment["TMPDIR"] = directory.path
    environment["USER_REPORTS_BYTES"] = "\(memoryBytes)"
    // A crash is an outcome; a backtrace would only take time.
    environment["SWIFT_BACKTRACE"] = "enable=no"
    for name in ["http_proxy", "https_proxy", "all_proxy"] { environment[name] = nil }
    process.environment = environment
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    try process.run()
    let reader = Reader(output.fileHandleForReading)
    guard ended.wait(timeout: .now() + .seconds(secondsMax)) == .success else {
      kill(process.processIdentifier, SIGKILL)
      ended.wait()
      return (.hung, reader.text)
    }
    let text = reader.text
    if process.terminationReason == .uncaughtSignal { return (.crashed(signal: Int(process.terminationStatus)), text) }
    let line = text.split(separator: "\n").last.map(String.init) ?? ""
    return (process.terminationStatus == 0 ? .passed : .failed(line), text)
  }

  /// Reads the program's output while it runs: the program would block on a full pipe.
  private final class Reader: @unchecked Sendable {
    private let done = DispatchSemaphore(value: 0)
    private var data = Data()

    init(_ handle: FileHandle) {
      Thread.detachNewThread { [self] in
        data = handle.readDataToEndOfFile()
        done.signal()
      }
    }

    var text: String {
      done.wait()
      done.signal()
      return String(decoding: data, as: UTF8.self)
    }
  }
}
