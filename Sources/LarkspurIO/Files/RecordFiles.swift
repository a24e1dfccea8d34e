/// The file operations by which a record is replaced, in one directory. Tests implement them in memory, and can make any of
/// them fail.
///
/// Names are names of entries, not paths, and no function follows a symbolic link. All functions block their thread.
public protocol RecordFiles: Sendable {
  /// Returns the first `count` bytes of a file, or all of them if there are fewer.
  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8]
  /// Creates a file that only its owner can read. Fails if there is a file with this name.
  func create(_ name: String) throws(Errno) -> any RecordFile
  /// Renames a file, and replaces a file of the other name in one step.
  func rename(_ name: String, to other: String) throws(Errno)
  func remove(_ name: String) throws(Errno)
  /// Returns once the names of the files have reached the disk.
  func sync() throws(Errno)
}

extension RecordFiles {
  /// Writes and syncs a file, and renames it into its place. Until the last call the earlier file is untouched. The new
  /// name is on the disk after `sync`.
  ///
  /// - Parameter new: The name of the file while it is being written.
  public func replace(_ name: String, by bytes: [UInt8], new: String) throws(Errno) {
    do throws(Errno) {
      try removeIfPresent(new)
      let file = try create(new)
      try file.append(bytes)
      try file.sync()
      try rename(new, to: name)
    } catch {
      // A full disk needs the room. If this fails, too, the next write or the next owner removes the file.
      try? remove(new)
      throw error
    }
  }

  public func removeIfPresent(_ name: String) throws(Errno) {
    do throws(Errno) { try remove(name) } catch .noSuchFile {}
  }
}

/// A new file of a record.
public protocol RecordFile: Sendable {
  func append(_ bytes: [UInt8]) throws(Errno)
  /// Returns once the written bytes have reached the disk.
  func sync() throws(Errno)
}

extension OpenFile: RecordFile {
  public func append(_ bytes: [UInt8]) throws(Errno) { try write(bytes.span) }
}
