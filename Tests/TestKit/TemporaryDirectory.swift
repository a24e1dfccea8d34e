import Foundation

/// A directory for one test. Deinitialization removes it with its content.
public final class TemporaryDirectory: Sendable {
  public let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-\(UUID().uuidString)")

  public init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(at: url) }

  public func file(_ name: String) -> URL { url.appending(path: name) }

  public func path(_ name: String) -> String { file(name).path }
}
