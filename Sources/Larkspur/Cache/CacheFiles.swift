import Foundation
import LarkspurIO

/// The file operations that a cache needs. Tests implement them in memory and can stop at any operation.
protocol CacheFiles: Sendable {
  func list() throws(Errno) -> [Directory.Facts]
  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8]
  /// Creates a file. Fails if there is a file with this name.
  func create(_ name: String, _ head: [UInt8], _ body: Data) throws(Errno)
  func rename(_ name: String, to other: String) throws(Errno)
  func remove(_ name: String) throws(Errno)
  func setTimes(_ name: String, used: Double?, changed: Double?) throws(Errno)
}

/// The files of one directory.
struct DirectoryFiles: CacheFiles {
  private let directory: Directory

  /// Opens the directory.
  ///
  /// - Parameter isCreating: Whether the directory and its parents are created if they are missing.
  init(path: String, isCreating: Bool) throws(Errno) {
    if isCreating {
      let parent = URL(fileURLWithPath: path).deletingLastPathComponent()
      // An error is ignored here: creating the directory itself then fails.
      try? FileManager.default.createDirectory(
        at: parent, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    directory = try Directory(path: path, isCreating: isCreating)
  }

  func list() throws(Errno) -> [Directory.Facts] { try directory.list() }

  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] { try directory.read(name, atMost: count) }

  func create(_ name: String, _ head: [UInt8], _ body: Data) throws(Errno) {
    let file = try directory.create(name)
    try file.write(head.span)
    try file.write(body.span)
  }

  func rename(_ name: String, to other: String) throws(Errno) { try directory.rename(name, to: other) }

  func remove(_ name: String) throws(Errno) { try directory.remove(name) }

  func setTimes(_ name: String, used: Double?, changed: Double?) throws(Errno) {
    try directory.setTimes(name, used: used, changed: changed)
  }
}

/// The location of a cache's files.
enum CacheLocation {
  /// The name of the cache's own directory inside the given one, which may hold other files and have other permissions.
  static let directoryName = "URLCache"

  /// Returns the directory of a cache.
  ///
  /// - Parameter path: The directory that the program asks for. A relative path is below the program's cache directory;
  ///   `nil` is the program's cache directory.
  /// - Returns: The path, or `nil` if there is no such directory.
  static func path(_ path: String?) -> String? {
    if let path, path.hasPrefix("/") { return join(path, directoryName) }
    guard let program = programDirectory else { return nil }
    guard let path, !path.isEmpty else { return join(program, directoryName) }
    // Reject `..`, which leads out of the program's directory. By bytes, because a slash with a combining character
    // after it is another `Character`.
    guard !path.utf8.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) }) else {
      return nil
    }
    return join(join(program, path), directoryName)
  }

  /// `$XDG_CACHE_HOME/<program>`, or `~/.cache/<program>` (XDG Base Directory Specification).
  static var programDirectory: String? {
    let name = ProcessInfo.processInfo.processName.split(separator: "/").last.map(String.init) ?? ""
    let program = name.isEmpty || name == "." || name == ".." ? "larkspur" : name
    // The specification says that a relative path is ignored.
    if let home = EnvironmentVariable.value(of: "XDG_CACHE_HOME"), home.hasPrefix("/") {
      return join(home, program)
    }
    let home = FileManager.default.homeDirectoryForCurrentUser.path
    return home.hasPrefix("/") ? join(join(home, ".cache"), program) : nil
  }

  private static func join(_ path: String, _ name: String) -> String {
    path.hasSuffix("/") ? path + name : path + "/" + name
  }
}
