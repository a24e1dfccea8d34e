import Foundation
import TestKit
import Testing

extension Tag {
  /// Tests that take minutes.
  @Tag static var slow: Self
}

/// A package that depends on this one by version, as users' packages do, builds and runs.
@Suite(.tags(.slow), .serialized, .ownThread) struct ConsumerTests {
  struct Failed: Error, CustomStringConvertible {
    var description: String
  }

  private let directory = FileManager.default.temporaryDirectory.appending(
    path: "larkspur-consumer-\(UUID().uuidString)")

  @Test func aPackageThatDependsOnUsByVersion() throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let clone = directory.appending(path: "larkspur")
    let consumer = directory.appending(path: "consumer")
    for place in [consumer.appending(path: "Sources/consumer"), directory.appending(path: "tmp")] {
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    }

    // Only committed files are part of a version.
    try run("git", "clone", "--quiet", "--no-hardlinks", Repository.root.path, clone.path)
    try run("git", "-C", clone.path, "tag", "0.1.0")
    let session = """
      import Foundation
      import Larkspur
      import LarkspurTestServer

      // As programs have it that are also built where there is none.
      extension URLSession {
        func bytes(
          for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
        ) async throws -> ([UInt8], URLResponse) {
          let (data, response) = try await data(for: request, delegate: delegate)
          return (Array(data), response)
        }
      }

      let server = try TestServer()
      guard let url = URL(string: server.url("/bytes/1000")) else { exit(1) }
      let (data, _) = try await URLSession.shared.data(from: url)
      var count = 0
      for try await _ in try await URLSession.shared.bytes(from: url).0 { count += 1 }
      let (file, response) = try await URLSession.shared.download(from: url)
      let own = try await URLSession.shared.bytes(for: URLRequest(url: url)).0
      print(data.count, count, own.count, try Data(contentsOf: file) == data, (response as? HTTPURLResponse)?.statusCode ?? 0)
      try FileManager.default.removeItem(at: file)
      """
    try Data(manifest(["Larkspur", "LarkspurTestServer"], clone).utf8)
      .write(to: consumer.appending(path: "Package.swift"))
    try Data(session.utf8).write(to: consumer.appending(path: "Sources/consumer/main.swift"))
    // The programs that stay as they are (`Tests/FoundationNetworking`) are linked as a single file as well.
    let build = [
      "--package-path", consumer.path, "--cache-path", directory.appending(path: "cache").path, "--scratch-path",
      directory.appending(path: "build").path,
    ]
    try run(["swift", "build"] + build)
    let binaries = try run(["swift", "build", "--show-bin-path"] + build)
    let program = binaries.trimmingCharacters(in: .whitespacesAndNewlines) + "/consumer"
    #expect(try run(program) == "1000 1000 1000 true 200\n")
  }

  private func manifest(_ products: [String], _ clone: URL) -> String {
    let dependencies = products.map { ".product(name: \"\($0)\", package: \"larkspur\")" }.joined(separator: ", ")
    return """
      // swift-tools-version: 6.2
      import PackageDescription
      let package = Package(
        name: "consumer",
        dependencies: [.package(url: "file://\(clone.path)", from: "0.1.0")],
        targets: [.executableTarget(name: "consumer", dependencies: [\(dependencies)])])
      """
  }

  @discardableResult
  private func run(_ command: String...) throws -> String { try run(command) }

  /// Runs a program.
  ///
  /// - Returns: Its output.
  /// - Throws: `Failed` with the end of the output if the exit status is not 0.
  @discardableResult
  private func run(_ command: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    var environment = ProcessInfo.processInfo.environment
    // The checkout may belong to another user than the one that runs the tests.
    environment["GIT_CONFIG_COUNT"] = "1"
    environment["GIT_CONFIG_KEY_0"] = "safe.directory"
    environment["GIT_CONFIG_VALUE_0"] = "*"
    // The package manager leaves lock files in the temporary directory.
    environment["TMPDIR"] = directory.appending(path: "tmp").path
    process.environment = environment
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failed(description: "\(command.joined(separator: " ")): \(text.suffix(3000))")
    }
    return text
  }
}
