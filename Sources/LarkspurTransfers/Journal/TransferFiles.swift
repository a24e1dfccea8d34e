import LarkspurIO

/// The file operations that a journal needs. Tests implement them in memory, and can make any of them fail.
public protocol TransferFiles: RecordFiles {
  func list() throws(Errno) -> [Directory.Facts]
  /// Returns once the bytes of a file have reached the disk.
  func sync(_ name: String) throws(Errno)
  /// Removes the directory, which must have no files.
  func removeDirectory() throws(Errno)
  /// Tries to take a lock that ends with the returned object, and with the process. Does not wait.
  ///
  /// - Returns: `nil` if the lock is held already.
  func lock(_ name: String) throws(Errno) -> (any Sendable)?
}

/// The files of one private directory of the user: mode 0700, with files of mode 0600. Links are not followed.
public struct DirectoryTransferFiles: TransferFiles {
  private let path: String
  private let directory: Directory

  /// Opens the directory. Creates it, and those above it, if it does not exist.
  public init(path: String) throws(Errno) {
    self.path = path
    directory = try Directory.ofOwner(at: path)
  }

  public func list() throws(Errno) -> [Directory.Facts] { try directory.list() }

  public func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] {
    try directory.read(name, atMost: count)
  }

  public func create(_ name: String) throws(Errno) -> any RecordFile { try directory.create(name) }

  public func sync(_ name: String) throws(Errno) { try OpenFile(updatingRegular: "\(path)/\(name)").sync() }

  public func rename(_ name: String, to other: String) throws(Errno) { try directory.rename(name, to: other) }

  public func remove(_ name: String) throws(Errno) { try directory.remove(name) }

  public func sync() throws(Errno) { try directory.sync() }

  public func removeDirectory() throws(Errno) { try FilePaths.removeDirectory(path) }

  public func lock(_ name: String) throws(Errno) -> (any Sendable)? { try directory.lock(name) }
}
