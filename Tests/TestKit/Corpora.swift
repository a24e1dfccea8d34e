import Foundation

/// The public test suites, which are read from a directory outside the project and never copied into it.
package enum Corpora {
  /// The directory in `LARKSPUR_CORPORA`, or `shared/corpora` in the project's root.
  package static let root: URL = {
    if let path = ProcessInfo.processInfo.environment["LARKSPUR_CORPORA"] {
      return URL(fileURLWithPath: path, isDirectory: true)
    }
    var root = URL(fileURLWithPath: #filePath)
    // Removes this file's name, its target, `Tests` and the project's own name from the path.
    for _ in 0..<4 { root.deleteLastPathComponent() }
    return root.appendingPathComponent("shared/corpora", isDirectory: true)
  }()

  /// Whether tests that read the corpora run. Without corpora they are skipped with a message, except in CI, where they
  /// run and fail.
  package static let shouldRun =
    FileManager.default.fileExists(atPath: root.path) || ProcessInfo.processInfo.environment["CI"] != nil

  package static let absence = "no test corpora at \(root.path); LARKSPUR_CORPORA says where they are"

  package static func data(_ path: String) throws -> Data {
    try Data(contentsOf: root.appendingPathComponent(path))
  }

  package static func decode<Cases: Decodable>(_ type: Cases.Type, from path: String) throws -> Cases {
    try JSONDecoder().decode(type, from: data(path))
  }
}
