import CLarkspurLinux

/// What is done to files by their paths.
package enum FilePaths {
  package enum Kind: Hashable, Sendable {
    /// With its permissions.
    case regularFile(UInt32)
    case directory
    /// A device, a pipe, a socket.
    case other
  }

  /// What stands at the path, links followed. Nil: nothing.
  package static func kind(of path: String) throws(Errno) -> Kind? {
    let mode = unsafe larkspur_mode_of_path(path)
    guard mode >= 0 else {
      guard Errno.current == .noSuchFile else { throw .current }
      return nil
    }
    switch mode & Int(LARKSPUR_MODE_TYPE) {
    case Int(LARKSPUR_MODE_REGULAR): return .regularFile(UInt32(mode & 0o7777))
    case Int(LARKSPUR_MODE_DIRECTORY): return .directory
    default: return .other
    }
  }

  /// The path of what is there, without links in it.
  package static func resolved(_ path: String) throws(Errno) -> String {
    guard let words = unsafe realpath(path, nil) else { throw .current }
    // Safe: realpath returns a NUL-terminated string that is ours to free.
    defer { unsafe free(words) }
    return unsafe String(cString: words)
  }

  /// Puts the file in the place of what stands at the other path, in one step.
  package static func rename(_ path: String, to other: String) throws(Errno) {
    guard unsafe CLarkspurLinux.rename(path, other) == 0 else { throw .current }
  }

  package static func remove(_ path: String) throws(Errno) {
    guard unsafe unlink(path) == 0 else { throw .current }
  }
}
