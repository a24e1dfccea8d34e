extension Directory {
  /// Opens a directory that only its owner may enter. Creates the directory, and those above it, if it does not exist.
  /// A directory that was created is on the disk when the call returns.
  ///
  /// - Parameter path: A path without `..`. A relative path starts at the process's working directory.
  public static func ofOwner(at path: String) throws(Errno) -> Directory {
    do throws(Errno) {
      return try Directory(path: path, isCreating: false)
    } catch .noSuchFile {
      try create(path[...])
      return try Directory(path: path, isCreating: false)
    }
  }

  private static func create(_ path: Substring) throws(Errno) {
    let slash = UInt8(ascii: "/")
    var path = path
    while path.utf8.count > 1, path.utf8.last == slash { path = Substring(path.utf8.dropLast()) }
    // The kernel has refused the empty path, and `/` exists.
    guard !path.isEmpty, path != "/" else { throw .noSuchFile }
    let last = path.utf8.lastIndex(of: slash)
    let name = last.map { path[path.utf8.index(after: $0)...] } ?? path
    let parent = last.map { $0 == path.startIndex ? "/" : path[..<$0] } ?? "."
    let directory: OpenDirectory
    do throws(Errno) {
      directory = try OpenDirectory(path: String(parent))
    } catch .noSuchFile {
      try create(parent)
      directory = try OpenDirectory(path: String(parent))
    }
    do throws(Errno) {
      try directory.makeDirectory(String(name), permissions: 0o700)
      try directory.sync()
    } catch .fileExists {
      // Another process has created the directory meanwhile.
    }
  }
}
