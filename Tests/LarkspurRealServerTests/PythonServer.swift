import Foundation
import Testing

/// A server in Python on a loopback port that the kernel chooses. The server runs until its last reference is released.
final class PythonServer: Sendable {
  /// The directory of the package.
  static let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  let port: Int
  private let process: ServerProcess

  /// - Parameters:
  ///   - script: The path of the program, from the package's directory. The program prints `listening on` and its port.
  ///   - python: The interpreter.
  init(_ script: String, _ arguments: [String] = [], python: String = "/usr/bin/python3") throws {
    try requireProgram(python, package: "python3")
    let path = Self.package.appending(path: script).path
    let process = try ServerProcess(python, ["-u", path] + arguments, readyText: "listening on ")
    guard let match = process.greeting.firstMatch(of: /listening on (\d+)/), let port = Int(match.1) else {
      process.end()
      throw RealServer.Unavailable(description: "\(script) says \(process.greeting)")
    }
    self.port = port
    self.process = process
  }

  deinit { process.end() }
}

/// Packages from Python's package index, in virtual environments.
enum PythonPackages {
  /// Makes a virtual environment with packages in a directory.
  ///
  /// - Returns: The path of its interpreter.
  static func install(_ packages: [String], in directory: URL) throws -> String {
    try ServerProcess.run("/usr/bin/env", ["python3", "-m", "venv", directory.path])
    let python = directory.path + "/bin/python"
    try ServerProcess.run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"] + packages)
    return python
  }

  /// Returns a value that needs packages. If they are not available, this throws in CI, and elsewhere cancels the test
  /// with a message.
  static func require<Value>(_ value: Result<Value, any Error>, _ name: String) throws -> Value {
    switch value {
    case .success(let value): return value
    case .failure(let error):
      guard ProcessInfo.processInfo.environment["CI"] == nil else { throw error }
      FileHandle.standardError.write(Data("skipped: \(name) cannot be installed: \(error)\n".utf8))
      try Test.cancel("\(name) cannot be installed")
    }
  }
}
