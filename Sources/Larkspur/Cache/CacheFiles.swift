import Foundation
import LarkspurIO

/// The files of a cache, as far as a cache needs them. Tests have one in memory, which stops where they want.
protocol CacheFiles: Sendable {
  func list() throws(Errno) -> [Folder.Facts]
  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8]
  /// Creates a file, and fails if there is one.
  func create(_ name: String, _ head: [UInt8], _ body: Data) throws(Errno)
  func rename(_ name: String, to other: String) throws(Errno)
  func remove(_ name: String) throws(Errno)
  func setTimes(_ name: String, used: Double?, changed: Double?) throws(Errno)
}

/// Files in a folder.
struct FolderFiles: CacheFiles {
  private let folder: Folder

  /// - Parameter isCreating: The folder and those above it are made if they are not there.
  init(path: String, isCreating: Bool) throws(Errno) {
    if isCreating {
      let parent = URL(fileURLWithPath: path).deletingLastPathComponent()
      // Whether it worked is seen when the folder itself is made.
      try? FileManager.default.createDirectory(
        at: parent, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    folder = try Folder(path: path, isCreating: isCreating)
  }

  func list() throws(Errno) -> [Folder.Facts] { try folder.list() }

  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] { try folder.read(name, atMost: count) }

  func create(_ name: String, _ head: [UInt8], _ body: Data) throws(Errno) {
    let file = try folder.create(name)
    try file.write(head.span)
    try file.write(body.span)
  }

  func rename(_ name: String, to other: String) throws(Errno) { try folder.rename(name, to: other) }

  func remove(_ name: String) throws(Errno) { try folder.remove(name) }

  func setTimes(_ name: String, used: Double?, changed: Double?) throws(Errno) {
    try folder.setTimes(name, used: used, changed: changed)
  }
}

/// Where a cache keeps its files.
enum CacheLocation {
  /// A folder of its own in the one that was given: that one may belong to others as well, and have other
  /// permissions.
  static let folderName = "URLCache"

  /// - Parameter path: Where the program wants it; a relative path is one below the program's cache folder. Nil:
  /// there.
  /// - Returns: Nil if there is no such place.
  static func path(_ path: String?) -> String? {
    if let path, path.hasPrefix("/") { return join(path, folderName) }
    guard let program = programFolder else { return nil }
    guard let path, !path.isEmpty else { return join(program, folderName) }
    // `..` leads out of the program's folder, which nobody can have meant.
    guard !path.split(separator: "/").contains("..") else { return nil }
    return join(join(program, path), folderName)
  }

  /// `$XDG_CACHE_HOME/<program>`, or `~/.cache/<program>` (XDG Base Directory Specification).
  static var programFolder: String? {
    let name = ProcessInfo.processInfo.processName.split(separator: "/").last.map(String.init) ?? ""
    let program = name.isEmpty || name == "." || name == ".." ? "larkspur" : name
    // The specification has relative paths ignored.
    if let home = ProcessInfo.processInfo.environment["XDG_CACHE_HOME"], home.hasPrefix("/") {
      return join(home, program)
    }
    let home = FileManager.default.homeDirectoryForCurrentUser.path
    return home.hasPrefix("/") ? join(join(home, ".cache"), program) : nil
  }

  private static func join(_ path: String, _ name: String) -> String {
    path.hasSuffix("/") ? path + name : path + "/" + name
  }
}
