import Glibc

/// Reports when a name is removed from a directory (inotify).
public final class RemovalWatch: Sendable {
  private let descriptor: OpenFile

  /// Starts to watch a directory. `wait` also reports removals that happen after this call and before `wait` is called.
  ///
  /// - Throws: `tooManyDescriptors` or `noSpace` if the user already has as many watches as the machine allows;
  ///   otherwise the error of watching the path.
  public init(directory path: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path.
    descriptor = try OpenFile(opened: unsafe larkspur_watch_removals(path))
  }

  /// Blocks until the name has been removed or renamed, or the directory has. The name may be in use again.
  public func wait(for name: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe larkspur_wait_for_removal(descriptor.number, name) == 0 else { throw .current }
  }
}
