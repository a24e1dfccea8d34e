import Glibc
import LarkspurBytes

/// Moving files into and out of a directory, and appending to files.
extension Directory {
  /// Moves a file into the directory, without a copy. Replaces a file of that name.
  ///
  /// - Parameter path: The file, on the same file system.
  public func moveIn(_ path: String, as name: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of the names.
    guard unsafe renameat(AT_FDCWD, path, descriptor.number, name) == 0 else { throw .current }
  }

  /// Gives a file without a name one in the directory, on the same file system.
  ///
  /// - Throws: `fileExists` if the name is in use.
  public func link(_ file: OpenFile, as name: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe larkspur_link_file(file.number, descriptor.number, name) == 0 else { throw .current }
  }

  /// Moves a file out of the directory, without a copy. Replaces a file at the path.
  ///
  /// - Parameter path: The new path, on the same file system.
  public func moveOut(_ name: String, to path: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of the names.
    guard unsafe renameat(descriptor.number, name, AT_FDCWD, path) == 0 else { throw .current }
  }

  /// Renames a file. Fails if the new name is in use.
  public func renameNew(_ name: String, to other: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of the names.
    guard unsafe linkat(descriptor.number, name, descriptor.number, other, 0) == 0 else { throw .current }
    try remove(name)
  }

  /// Opens a file for writing behind its first `size` bytes.
  ///
  /// - Throws: `notPermitted` if the file is not a regular file of the current user with exactly one name and `size`
  ///   bytes. Another process may have put another file in its place.
  public func openPart(_ name: String, size: Int) throws(Errno) -> OpenFile {
    // Safe: the call reads a NUL-terminated copy of the name.
    let file = try OpenFile(opened: unsafe larkspur_open_in_folder(descriptor.number, name, O_WRONLY, 0, 1))
    guard try file.byteCount() == size else { throw .notPermitted }
    return file
  }

  /// Opens a file whose writes go behind its end, also while other processes write to it (`O_APPEND`). Creates the file,
  /// for the current user only, if there is none.
  ///
  /// - Throws: `notPermitted` if the file is not a regular file of the current user with exactly one name.
  public func openAppending(_ name: String) throws(Errno) -> OpenFile {
    // Safe: the call reads a NUL-terminated copy of the name.
    let flags = O_WRONLY | O_APPEND | O_CREAT
    return try OpenFile(opened: unsafe larkspur_open_in_folder(descriptor.number, name, flags, 0o600, 1))
  }
}

extension OpenFile {
  /// Truncates the file to `count` bytes, and moves the position for writing to the new end.
  public func cut(toBytes count: Int) throws(Errno) {
    guard larkspur_cut_file(number, Int64(count)) == 0 else { throw .current }
  }

  /// Returns the current size of the file in bytes.
  public func byteCount() throws(Errno) -> Int { try status().size }
}
