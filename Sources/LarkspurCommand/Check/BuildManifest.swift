import Foundation

/// The list of commands that SwiftPM makes of a package graph, such as `.build/debug.yaml`. The list says in which
/// order the modules are compiled.
///
/// ```
///   "C.One-x86_64-unknown-linux-gnu-debug.module":
///     tool: shell
///     inputs: ["/a/One.swift","/a/Modules/Larkspur.swiftmodule"]
///     outputs: ["/a/One.build/One.swift.o","/a/Modules/One.swiftmodule"]
/// ```
package struct BuildManifest: Hashable, Sendable {
  /// The modules that each module's compilation waits for.
  private var inputs: [String: Set<String>] = [:]

  /// Parses a manifest. Anything that is not understood is left out.
  package init(_ bytes: [UInt8]) {
    var latest: Set<String> = []
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let text = line.drop { $0 == UInt8(ascii: " ") }
      if text.starts(with: "inputs: ".utf8) {
        latest = Self.modules(in: text.dropFirst("inputs: ".utf8.count))
      } else if text.starts(with: "outputs: ".utf8) {
        for module in Self.modules(in: text.dropFirst("outputs: ".utf8.count)) {
          inputs[module, default: []].formUnion(latest)
        }
      }
    }
  }

  private static func modules(in list: ArraySlice<UInt8>) -> Set<String> {
    let paths = (try? JSONDecoder().decode([String].self, from: Data(list))) ?? []
    return Set(paths.compactMap(ModulePath.name(of:)))
  }

  /// Whether SwiftPM compiles `module` after `other` in each build, and again when `other` has changed.
  package func orders(_ module: String, after other: String) -> Bool {
    var queue = [module]
    var seen: Set<String> = []
    while let next = queue.popLast() {
      if next == other { return true }
      if seen.insert(next).inserted { queue += inputs[next] ?? [] }
    }
    return false
  }
}

/// The paths of compiled modules.
enum ModulePath {
  private static let suffix = ".swiftmodule"

  /// - Returns: The module's name, or `nil` if the path is not that of a module that SwiftPM has built. SwiftPM writes a
  ///   file into `Modules`. In the toolchain a module is a directory, with a file for each architecture.
  static func name(of path: String) -> String? {
    let parts = path.split(separator: "/")
    guard let last = parts.last, last.hasSuffix(suffix), parts.dropLast().last == "Modules" else { return nil }
    return String(last.dropLast(suffix.count))
  }
}
