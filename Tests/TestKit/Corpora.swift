import Foundation

/// The public test suites that are read from beside the project, never copied into it.
package enum Corpora {
  /// LARKSPUR_CORPORA, or `shared/corpora` beside the project's root.
  package static let root: URL = {
    if let path = ProcessInfo.processInfo.environment["LARKSPUR_CORPORA"] {
      return URL(fileURLWithPath: path, isDirectory: true)
    }
    var root = URL(fileURLWithPath: #filePath)
    // This file, its target, Tests, the project.
    for _ in 0..<4 { root.deleteLastPathComponent() }
    return root.appendingPathComponent("shared/corpora", isDirectory: true)
  }()

  /// Whether a test that reads them should run. Where they are absent it is skipped and says so, but not in
  /// CI: there it runs, and fails to find its file.
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
