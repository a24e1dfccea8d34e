@_implementationOnly import CLarkspurLinux

/// Files that move into a folder and out of it, or are written on.
extension Folder {
  /// Puts a file from elsewhere on the same file system into the folder. Nothing is copied.
  public func takeIn(_ path: String, as name: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of the names.
    guard unsafe renameat(AT_FDCWD, path, descriptor.number, name) == 0 else { throw .current }
  }

  /// The other way round. What stands at the path is replaced.
  public func giveOut(_ name: String, to path: String) throws(Errno) {
    // Safe: as in `takeIn`.
    guard unsafe renameat(descriptor.number, name, AT_FDCWD, path) == 0 else { throw .current }
  }

  /// Gives a file another name, and fails if there is one of that name.
  public func renameNew(_ name: String, to other: String) throws(Errno) {
    // Safe: as in `takeIn`.
    guard unsafe linkat(descriptor.number, name, descriptor.number, other, 0) == 0 else { throw .current }
    try remove(name)
  }

  /// Opens a file in order to write behind its first bytes.
  ///
  /// - Throws: `notPermitted` if it is not a regular file of this user's with one name, of exactly `size` bytes: what
  ///   somebody has laid there in its place.
  public func openPart(_ name: String, size: Int) throws(Errno) -> OpenFile {
    // Safe: as in `takeIn`.
    try OpenFile(opened: unsafe larkspur_open_part_in_folder(descriptor.number, name, Int64(size)))
  }
}

extension OpenFile {
  /// Takes away what is behind so many bytes, and goes on writing there.
  public func cut(toBytes count: Int) throws(Errno) {
    guard larkspur_cut_file(number, Int64(count)) == 0 else { throw .current }
  }

  /// How many bytes it has at present.
  public func byteCount() throws(Errno) -> Int {
    let size = larkspur_size_of_descriptor(number)
    guard size >= 0 else { throw .current }
    return Int(size)
  }
}
