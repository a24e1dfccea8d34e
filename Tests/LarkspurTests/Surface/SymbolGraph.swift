import Foundation

/// A module's public declarations, as `swift symbolgraph-extract` writes them.
struct SymbolGraph: Decodable {
  struct Symbol: Decodable {
    struct Kind: Decodable { var identifier: String }
    struct Identifier: Decodable { var precise: String }

    struct Fragment: Decodable {
      var kind: String
      var spelling: String
    }

    struct Availability: Decodable {
      struct Version: Decodable {}
      var deprecated: Version?
      var isUnconditionallyDeprecated: Bool?
      var isUnconditionallyUnavailable: Bool?
    }

    var kind: Kind
    var identifier: Identifier
    var pathComponents: [String]
    var declarationFragments: [Fragment]
    var accessLevel: String
    var availability: [Availability]?

    var path: String { pathComponents.joined(separator: ".") }
    var text: String { declarationFragments.map(\.spelling).joined() }

    var isDeprecated: Bool {
      availability?.contains { $0.deprecated != nil || $0.isUnconditionallyDeprecated == true } ?? false
    }

    var isUnavailable: Bool { availability?.contains { $0.isUnconditionallyUnavailable == true } ?? false }
  }

  struct Relationship: Decodable {
    var kind: String
    var source: String
    var target: String
    var targetFallback: String?
  }

  var symbols: [Symbol]
  var relationships: [Relationship]

  struct Failed: Error, CustomStringConvertible {
    var description: String
  }

  /// Runs `swift-symbolgraph-extract` for a module.
  ///
  /// - Parameter directories: The directories of modules and of the C targets' module maps.
  static func extract(_ module: String, directories: [String]) throws -> SymbolGraph {
    let output = FileManager.default.temporaryDirectory.appending(path: "larkspur-surface-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: output) }
    let (status, words) = try ToolchainTool.run(
      "swift-symbolgraph-extract",
      [
        "-module-name", module, "-target", triple, "-minimum-access-level", "public", "-output-dir", output.path,
        "-module-cache-path", output.appending(path: "cache").path,
      ] + directories.flatMap { ["-I", $0] })
    guard status == 0 else { throw Failed(description: "\(module): \(words.suffix(2000))") }
    var graph = SymbolGraph(symbols: [], relationships: [])
    // A module's extensions of another module's types are in files of their own.
    for name in try FileManager.default.contentsOfDirectory(atPath: output.path).sorted()
    where name == "\(module).symbols.json" || name.hasPrefix("\(module)@") {
      let part = try JSONDecoder().decode(Self.self, from: Data(contentsOf: output.appending(path: name)))
      graph.symbols += part.symbols
      graph.relationships += part.relationships
    }
    guard !graph.symbols.isEmpty else { throw Failed(description: "\(module) declares nothing") }
    return graph
  }

  private static var triple: String {
    #if arch(arm64)
      "aarch64-unknown-linux-gnu"
    #else
      "x86_64-unknown-linux-gnu"
    #endif
  }

  /// The directory of the built modules, which is all that a package gets that does not declare a dependency on Larkspur.
  static func modules() throws -> String {
    let program = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    return program.deletingLastPathComponent().appending(path: "Modules").path
  }

  /// The directories with the built modules and the module maps.
  static func directories() throws -> [String] {
    var directories = [try modules()]
    var root = URL(filePath: #filePath)
    // Removes this file's name, its directory, its target and `Tests`.
    for _ in 0..<4 { root.deleteLastPathComponent() }
    let sources = root.appending(path: "Sources")
    let names = FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String } ?? []
    for name in names.sorted() where name.hasSuffix("module.modulemap") {
      directories.append(sources.appending(path: name).deletingLastPathComponent().path)
    }
    return directories
  }
}

/// A program of the toolchain.
enum ToolchainTool {
  /// Runs the program to its end.
  ///
  /// - Returns: The exit status, and the text of both outputs.
  static func run(_ name: String, _ arguments: [String]) throws -> (status: Int32, text: String) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [name] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }
}
