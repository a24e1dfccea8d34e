import LarkspurIO

/// The file operations that a journal needs. Tests implement them in memory, and can make any of them fail.
public protocol TransferFiles: Sendable {
  func list() throws(Errno) -> [Directory.Facts]
  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8]
  /// Creates a file that only its owner can read. Fails if there is a file with this name.
  func create(_ name: String) throws(Errno) -> any TransferFile
  /// Returns once the bytes of a file have reached the disk.
  func sync(_ name: String) throws(Errno)
  /// Renames a file, and replaces a file of the other name in one step.
  func rename(_ name: String, to other: String) throws(Errno)
  func remove(_ name: String) throws(Errno)
  /// Returns once the names of the files have reached the disk.
  func sync() throws(Errno)
  /// Removes the directory, which must have no files.
  func removeDirectory() throws(Errno)
  /// Tries to take a lock that ends with the returned object, and with the process. Does not wait.
  ///
  /// - Returns: `nil` if the lock is held already.
  func lock(_ name: String) throws(Errno) -> (any Sendable)?
}

extension TransferFiles {
  /// Writes and syncs a file, and renames it into its place. Until the last call the earlier file is untouched. The new
  /// name is on the disk after `sync`.
  ///
  /// - Parameter new: The name of the file while it is being written.
  func replace(_ name: String, by bytes: [UInt8], new: String) throws(Errno) {
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

  func removeIfPresent(_ name: String) throws(Errno) {
    do throws(Errno) { try remove(name) } catch .noSuchFile {}
  }
}

/// A file that a journal writes.
public protocol TransferFile: Sendable {
  func append(_ bytes: [UInt8]) throws(Errno)
  /// Returns once the written bytes have reached the disk.
  func sync() throws(Errno)
}

/// The files of one directory of the user's own: mode 0700, with files of mode 0600. Links are not followed.
public struct DirectoryTransferFiles: TransferFiles {
  private struct File: TransferFile {
    let file: OpenFile

    func append(_ bytes: [UInt8]) throws(Errno) { try file.write(bytes.span) }
    func sync() throws(Errno) { try file.sync() }
  }

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

  public func create(_ name: String) throws(Errno) -> any TransferFile { File(file: try directory.create(name)) }

  public func sync(_ name: String) throws(Errno) { try OpenFile(updatingRegular: "\(path)/\(name)").sync() }

  public func rename(_ name: String, to other: String) throws(Errno) { try directory.rename(name, to: other) }

  public func remove(_ name: String) throws(Errno) { try directory.remove(name) }

  public func sync() throws(Errno) { try directory.sync() }

  public func removeDirectory() throws(Errno) { try FilePaths.removeDirectory(path) }

  public func lock(_ name: String) throws(Errno) -> (any Sendable)? { try directory.lock(name) }
}
