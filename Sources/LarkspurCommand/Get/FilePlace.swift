import LarkspurIO

/// Where a regular file is created or replaced for a path of the command line. A symbolic link stays a link: its target
/// is created or replaced.
struct FilePlace {
  let path: String
  /// The permissions of the file that is replaced, or `nil` if there is none.
  let permissions: UInt32?

  /// - Returns: `nil` if there is a device, a pipe or a socket.
  /// - Throws: `isDirectory` if there is a directory.
  init?(_ path: String) throws(Errno) {
    switch try FilePaths.kind(of: path) {
    case nil: (self.path, permissions) = (try FilePaths.destination(of: path), nil)
    case .regularFile(let mode): (self.path, permissions) = (try FilePaths.resolved(path), mode)
    case .directory: throw .isDirectory
    case .other: return nil
    }
  }
}

/// Parts of paths.
enum FileName {
  /// - Returns: The directory's path: empty for the root directory, and `.` if the path has no directory.
  static func directory(of path: String) -> String {
    lastSlash(in: path).map { String(path[..<$0]) } ?? "."
  }

  /// The name up to its first dot.
  static func stem(of name: String) -> String { String(name.prefix { $0 != "." }) }

  /// The last component of the path.
  static func last(of path: String) -> String {
    lastSlash(in: path).map { String(path[path.utf8.index(after: $0)...]) } ?? path
  }

  /// Searches bytes, because a slash with a combining character behind it is another `Character`.
  private static func lastSlash(in path: String) -> String.Index? { path.utf8.lastIndex(of: UInt8(ascii: "/")) }
}
