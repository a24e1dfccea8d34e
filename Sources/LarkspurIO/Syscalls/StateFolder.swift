import CLarkspurLinux

/// A folder with what a program keeps from one run to the next, for its user's eyes only. Its calls block their thread.
///
/// Names are those of files in it; no link is followed.
package final class StateFolder: Sendable {
  private let folder: OpenFile

  /// - Throws: `notPermitted` if it is another user's.
  package init(path: String) throws(Errno) {
    // Safe: the call reads the path, which lives as long as the call.
    folder = try OpenFile(opened: unsafe larkspur_open_state_folder(path))
  }

  /// All of a file. Nil: there is none.
  /// - Throws: `fileTooLarge` if it has more than `most` bytes; `notPermitted` if it is no regular file.
  package func read(_ name: String, atMost most: Int) throws(Errno) -> [UInt8]? {
    // Safe: the call reads the name, which lives as long as the call.
    let number = unsafe larkspur_open_state(folder.number, name)
    if number < 0, Errno.current == .noSuchFile { return nil }
    let file = try OpenFile(opened: number)
    guard file.isRegularFile else { throw .notPermitted }
    var bytes: [UInt8] = []
    while true {
      let piece = try file.read(atMost: 1 << 16)
      if piece.isEmpty { return bytes }
      bytes += piece
      guard bytes.count <= most else { throw .fileTooLarge }
    }
  }

  /// Creates a file for this user only, and fails if there is one of that name.
  package func create(_ name: String) throws(Errno) -> OpenFile {
    // Safe: as in `read`.
    try OpenFile(opened: unsafe larkspur_create_state(folder.number, name))
  }

  /// Puts a file in the place of another, in one step.
  package func rename(_ name: String, to other: String) throws(Errno) {
    // Safe: as in `read`.
    guard unsafe renameat(folder.number, name, folder.number, other) == 0 else { throw .current }
  }

  /// Nothing happens if there is no such file.
  package func remove(_ name: String) throws(Errno) {
    // Safe: as in `read`.
    guard unsafe unlinkat(folder.number, name, 0) == 0 || Errno.current == .noSuchFile else { throw .current }
  }

  /// Returns when the names of the files have reached the disk.
  package func sync() throws(Errno) { try folder.sync() }

  /// Takes a lock that processes and threads share, by way of a file. It is free again when the file is let go of, and
  /// when the process ends in whatever way. Nil: somebody else has it. Nobody waits: who has it may be stopped.
  package func lock(_ name: String) throws(Errno) -> OpenFile? {
    // Safe: as in `read`.
    let file = try OpenFile(opened: unsafe larkspur_open_lock(folder.number, name))
    guard flock(file.number, LOCK_EX | LOCK_NB) != 0 else { return file }
    if Errno.current == .wouldBlock { return nil }
    throw .current
  }
}

extension OpenFile {
  /// Returns when what was written has reached the disk.
  package func sync() throws(Errno) {
    while fsync(number) != 0 {
      let error = Errno.current
      if error != .interrupted { throw error }
    }
  }
}
