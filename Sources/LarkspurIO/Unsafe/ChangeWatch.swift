import Glibc

/// Notes that entries of directories have changed (inotify).
public final class ChangeWatch: Sendable {
  private let descriptor: OpenFile

  /// Watches the directories of files. A directory that cannot be watched is left out.
  ///
  /// - Throws: `tooManyDescriptors` if the user or the process has as many watches as the machine allows.
  public init(files paths: [String]) throws(Errno) {
    descriptor = try OpenFile(opened: larkspur_open_change_watch())
    for path in paths {
      let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
      // Safe: the call reads a NUL-terminated copy of the path.
      _ = unsafe larkspur_watch_changes(descriptor.number, folder)
    }
  }

  /// Returns whether something in the directories has changed since the last call. Never blocks.
  public func takeChanges() -> Bool { (try? descriptor.read(atMost: 4096))?.isEmpty == false }
}
