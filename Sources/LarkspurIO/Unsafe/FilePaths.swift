import Glibc

/// Operations on files by their paths, and the parts of paths.
public enum FilePaths {
  /// Returns the path of a file's directory: empty for the root directory, and `.` if the path has no directory.
  public static func directory(of path: String) -> String {
    lastSlash(in: path).map { String(path[..<$0]) } ?? "."
  }

  /// Returns the last component of a path.
  public static func name(of path: String) -> String {
    lastSlash(in: path).map { String(path[path.utf8.index(after: $0)...]) } ?? path
  }

  /// Searches bytes, because a slash with a combining character after it is another `Character`.
  private static func lastSlash(in path: String) -> String.Index? { path.utf8.lastIndex(of: UInt8(ascii: "/")) }

  public enum Kind: Hashable, Sendable {
    /// A regular file, with its permissions.
    case regularFile(UInt32)
    case directory
    /// A device, a pipe or a socket.
    case other
  }

  /// Returns the kind of file at the path. Follows symbolic links.
  ///
  /// - Returns: The kind, or `nil` if there is no file.
  public static func kind(of path: String) throws(Errno) -> Kind? {
    let mode = unsafe larkspur_mode_of_path(path)
    guard mode >= 0 else {
      guard Errno.current == .noSuchFile else { throw .current }
      return nil
    }
    switch UInt32(truncatingIfNeeded: mode) & S_IFMT {
    case S_IFREG: return .regularFile(UInt32(mode & 0o7777))
    case S_IFDIR: return .directory
    default: return .other
    }
  }

  /// Returns the permissions that the process's umask leaves to a new file.
  ///
  /// The umask can only be read by setting a new one, so it is 077 for a moment: files that other threads create
  /// meanwhile are readable by their owner only. Call it on one thread at a time: of two calls at once, one takes the
  /// other's 077 for the process's umask, and sets it for good.
  public static func creationPermissions() -> UInt32 {
    let mask = umask(0o077)
    _ = umask(mask)
    return 0o666 & ~UInt32(mask)
  }

  /// Whether the file or directory belongs to root or to the effective user, and not every user may write to it.
  public static func isGuarded(_ path: String) -> Bool {
    // Safe: the call reads a NUL-terminated copy of the path.
    unsafe larkspur_is_guarded(path) != 0
  }

  /// Returns the path of an existing file without symbolic links.
  public static func resolved(_ path: String) throws(Errno) -> String {
    guard let resolved = unsafe realpath(path, nil) else { throw .current }
    // Safe: realpath returns a NUL-terminated string that the caller must free.
    defer { unsafe free(resolved) }
    return unsafe String(cString: resolved)
  }

  /// Returns the path at which a file would be created for `path`. Follows symbolic links, also to files that do not
  /// exist.
  ///
  /// - Throws: `tooManyLinks` after 40 links.
  public static func destination(of path: String) throws(Errno) -> String {
    var path = path
    // The kernel follows 40 links, too.
    for _ in 0..<40 {
      guard let target = link(at: path) else { return path }
      let isRelative = target.utf8.first != UInt8(ascii: "/")
      path = (isRelative ? lastSlash(in: path).map { path[..<$0] + "/" } ?? "" : "") + target
    }
    throw .tooManyLinks
  }

  /// Returns the target of a symbolic link, or `nil` if the path is not one.
  private static func link(at path: String) -> String? {
    var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe target.withUnsafeMutableBytes { room in
      // Safe: the kernel writes at most `room.count` bytes.
      unsafe room.assumingMemoryBound(to: CChar.self).baseAddress.map { unsafe readlink(path, $0, room.count) } ?? -1
    }
    return count > 0 ? String(decoding: target[..<count], as: UTF8.self) : nil
  }

  /// Renames the file, and replaces a file at the other path in one step.
  public static func rename(_ path: String, to other: String) throws(Errno) {
    guard unsafe Glibc.rename(path, other) == 0 else { throw .current }
  }

  /// Removes an empty directory.
  public static func removeDirectory(_ path: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path.
    guard unsafe rmdir(path) == 0 else { throw .current }
  }

  public static func remove(_ path: String) throws(Errno) {
    guard unsafe unlink(path) == 0 else { throw .current }
  }
}
