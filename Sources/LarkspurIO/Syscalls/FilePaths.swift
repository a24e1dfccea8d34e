@_implementationOnly import CLarkspurLinux

/// What is done to files by their paths.
public enum FilePaths {
  public enum Kind: Hashable, Sendable {
    /// With its permissions.
    case regularFile(UInt32)
    case directory
    /// A device, a pipe, a socket.
    case other
  }

  /// What stands at the path, links followed. Nil: nothing.
  public static func kind(of path: String) throws(Errno) -> Kind? {
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
  public static func resolved(_ path: String) throws(Errno) -> String {
    guard let words = unsafe realpath(path, nil) else { throw .current }
    // Safe: realpath returns a NUL-terminated string that is ours to free.
    defer { unsafe free(words) }
    return unsafe String(cString: words)
  }

  /// Where something would be created at the path: links to what is not there are followed.
  public static func destination(of path: String) throws(Errno) -> String {
    var path = path
    // As many as the kernel follows.
    for _ in 0..<40 {
      guard let target = link(at: path) else { return path }
      let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
      path = target.hasPrefix("/") ? target : folder + target
    }
    throw .tooManyLinks
  }

  /// What a symbolic link says. Nil: it is none.
  private static func link(at path: String) -> String? {
    var words = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe words.withUnsafeMutableBytes { room in
      // Safe: the kernel writes no more than there is room for.
      unsafe room.assumingMemoryBound(to: CChar.self).baseAddress.map { unsafe readlink(path, $0, room.count) } ?? -1
    }
    return count > 0 ? String(decoding: words[..<count], as: UTF8.self) : nil
  }

  /// Puts the file in the place of what stands at the other path, in one step.
  public static func rename(_ path: String, to other: String) throws(Errno) {
    guard unsafe CLarkspurLinux.rename(path, other) == 0 else { throw .current }
  }

  public static func remove(_ path: String) throws(Errno) {
    guard unsafe unlink(path) == 0 else { throw .current }
  }
}
