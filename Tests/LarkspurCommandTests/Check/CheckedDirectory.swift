import Foundation

/// A temporary directory for files and subdirectories. Deinitialization removes it.
final class CheckedDirectory {
  let path: String

  init() throws {
    let name = "larkspur-check-" + String(UInt64.random(in: 0...(.max)), radix: 36)
    let url = FileManager.default.temporaryDirectory.appending(path: name)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    // `/tmp` can be a symbolic link, and the command compares resolved paths.
    path = url.resolvingSymlinksInPath().path
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Writes a file and creates the directories above it.
  ///
  /// - Parameter age: The age of the file's modification date, in seconds.
  /// - Returns: The path of the file.
  @discardableResult func write(_ bytes: [UInt8], to name: String, age: Double = 0) throws -> String {
    let url = URL(filePath: path + "/" + name)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: url)
    let date = Date(timeIntervalSince1970: 1_700_000_000 - age)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: url.path)
    return url.path
  }

  @discardableResult func write(_ text: String, to name: String, age: Double = 0) throws -> String {
    try write(Array(text.utf8), to: name, age: age)
  }
}
