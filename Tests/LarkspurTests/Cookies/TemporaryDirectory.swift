import Foundation

/// A temporary directory for one test. Deinitialization removes it.
final class TemporaryDirectory: Sendable {
  let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-\(UUID().uuidString)")

  init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appending(path: name).path }
}
