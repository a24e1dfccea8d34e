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
