import Foundation

/// Modules of one file each, as packages write them that know only the toolchain's FoundationNetworking. Deinitialization
/// removes them.
final class PackageCode {
  private let directory: URL
  private let searchPaths: [String]

  /// - Parameter modules: A directory of compiled modules that come before the toolchain's, or `nil`.
  init(modules: String?) throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-packages-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    searchPaths = [directory.path] + (modules.map { [$0] } ?? [])
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  /// Compiles a module.
  ///
  /// - Parameters:
  ///   - lines: The source, without `import Foundation`.
  ///   - isImported: Whether later modules import the module. The compiler then does not look into its functions.
  /// - Returns: The errors of each line that has errors, by the line's index.
  func errors(in name: String, imports: [String], _ lines: [String], isImported: Bool = false) throws -> [Int: [String]]
  {
    let file = directory.appending(path: "\(name).swift")
    let head = (["Foundation"] + imports).map { "import \($0)" }
    try (head + lines).joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
    let module = directory.appending(path: "\(name).swiftmodule").path
    let (status, text) = try ToolchainTool.run(
      "swiftc",
      (isImported ? ["-emit-module", "-emit-module-path", module] : ["-typecheck"])
        + ["-module-name", name, "-parse-as-library", "-suppress-warnings", "-diagnostic-style", "llvm", file.path]
        + searchPaths.flatMap { ["-I", $0] })
    var errors: [Int: [String]] = [:]
    for message in text.matches(of: /\.swift:(\d+):\d+: error: +([^\n]*)/) {
      errors[(Int(message.1) ?? 0) - head.count - 1, default: []].append(String(message.2))
    }
    if status != 0, errors.isEmpty { throw SymbolGraph.Failed(description: "\(name): \(text.suffix(2000))") }
    return errors
  }
}
