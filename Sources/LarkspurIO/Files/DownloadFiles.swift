/// The file operations of a download into one directory, each one system call as far as possible: a simulation ends the
/// process between any two of them. Tests implement them in memory.
///
/// Names are names of entries, not paths, and no function follows a symbolic link. All functions block their thread, and may
/// be called on several threads.
public protocol DownloadFiles: RecordFiles {
  /// Returns what is known of an entry, or `nil` if there is none.
  func facts(_ name: String) throws(Errno) -> OpenDirectory.Facts?

  /// Opens a regular file.
  ///
  /// - Returns: The file, or `nil` if another open file has its lock.
  /// - Throws: `noSuchFile`; `fileExists`; `notPermitted` for anything but a regular file, and, unless it is only read, for a
  ///   file of another user or with more than one name.
  func openPart(_ name: String, _ use: DownloadPartUse) throws(Errno) -> (any DownloadPart)?

  /// Returns the number of bytes that the user may still write to the file system.
  func freeBytes() throws(Errno) -> Int
}

/// What a file is opened for.
public enum DownloadPartUse: Hashable, Sendable {
  /// A new file, for writing and reading. Takes the lock, which ends with the last reference.
  case create
  /// An existing file, for writing and reading. Takes the lock, which ends with the last reference.
  case update
  /// An existing file, for reading.
  case read
}

/// An open file of a download, whose bytes arrive in any order.
public protocol DownloadPart: Sendable {
  func facts() throws(Errno) -> DownloadPartFacts
  /// Writes all bytes. After an error any part of them may have been written.
  func write(_ bytes: Span<UInt8>, at offset: Int) throws(Errno)
  /// Returns one to `count` bytes, or none at the end of the file.
  func read(at offset: Int, atMost count: Int) throws(Errno) -> [UInt8]
  /// Reserves room for the first `count` bytes. The size of the file stays. Does nothing where the file system has no such
  /// call.
  ///
  /// - Throws: `noSpace`, after which a part of the room may be reserved.
  func reserve(_ count: Int) throws(Errno)
  /// Cuts the file to a size, and releases the room after it.
  func cut(toBytes count: Int) throws(Errno)
  /// Sets the file's permissions (the nine lowest bits of `st_mode`).
  func setPermissions(_ mode: UInt32) throws(Errno)
  /// Returns once the written bytes and the size have reached the disk.
  func sync() throws(Errno)
  /// Ends the lock before the last reference does.
  func unlock()
}

public struct DownloadPartFacts: Hashable, Sendable {
  /// Size in bytes.
  public var size: Int
  /// Number of bytes for which the file has room on the disk. Less than the size if there are holes.
  public var allocated: Int
  public var inode: UInt64

  public init(size: Int, allocated: Int, inode: UInt64) {
    self.size = size
    self.allocated = allocated
    self.inode = inode
  }
}
