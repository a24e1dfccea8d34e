import Glibc

/// An open directory of any user, and the entries in it.
///
/// All functions take the name of one entry, not a path, and do not follow a symbolic link of that name: the target of
/// a link in the directory is out of reach. All calls block their thread.
public final class OpenDirectory: Sendable {
  /// The kind of an entry.
  public enum Kind: Hashable, Sendable {
    case regularFile
    case directory
    case symbolicLink
    /// A device, a socket or a pipe.
    case other
  }

  /// Distinguishes an entry from all others that exist at the same time, and, because numbers are used again, from later
  /// ones of another kind or time of creation. Renaming does not change the identity.
  public struct Identity: Hashable, Sendable {
    /// The number of the file system (`st_dev`).
    let device: UInt64
    /// The number of the entry in the file system (`st_ino`).
    let number: UInt64
    /// The type of the entry (`S_IFMT` of `st_mode`).
    let type: UInt32
    /// The time of creation in nanoseconds since 1970, or 0 if the file system does not store one.
    let born: Int64
  }

  /// What is known of an entry without opening it.
  public struct Facts: Hashable, Sendable {
    public var kind: Kind
    /// Size in bytes.
    public var size: Int
    public var inode: UInt64
    /// The nine lowest bits of `st_mode`.
    public var permissions: UInt32

    public init(kind: Kind, size: Int, inode: UInt64, permissions: UInt32) {
      (self.kind, self.size, self.inode, self.permissions) = (kind, size, inode, permissions)
    }
  }

  let descriptor: OpenFile

  init(_ descriptor: OpenFile) { self.descriptor = descriptor }

  /// Opens the directory at a path. Follows symbolic links in the path.
  public convenience init(path: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path that lives as long as the call.
    try self.init(OpenFile(opened: unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
  }

  /// Opens a directory in this one.
  ///
  /// - Throws: `notDirectory` or `tooManyLinks` for a symbolic link; `noSuchFile` if there is no such entry.
  public func directory(_ name: String) throws(Errno) -> OpenDirectory {
    // Safe: the call reads a NUL-terminated copy of the name.
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    return OpenDirectory(try OpenFile(opened: unsafe openat(descriptor.number, name, flags)))
  }

  /// Creates a directory. The process's umask applies to the permissions.
  public func makeDirectory(_ name: String, permissions: UInt32 = 0o777) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe mkdirat(descriptor.number, name, permissions) == 0 else { throw .current }
  }

  /// Creates a file for reading and writing. The process's umask applies to the permissions.
  ///
  /// - Throws: `fileExists` if the name is in use.
  public func makeFile(_ name: String, permissions: UInt32 = 0o666) throws(Errno) -> OpenFile {
    // Safe: the call reads a NUL-terminated copy of the name.
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    return try OpenFile(opened: unsafe openat(descriptor.number, name, flags, permissions))
  }

  /// Creates a symbolic link. The target need not exist.
  public func makeLink(_ name: String, to target: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of both strings.
    guard unsafe symlinkat(target, descriptor.number, name) == 0 else { throw .current }
  }

  /// The kind of an entry.
  ///
  /// - Returns: `nil` if there is no such entry.
  public func kind(_ name: String) throws(Errno) -> Kind? { try facts(name)?.kind }

  /// Returns what is known of an entry.
  ///
  /// - Returns: `nil` if there is no such entry.
  public func facts(_ name: String) throws(Errno) -> Facts? {
    let found: larkspur_access
    do throws(Errno) {
      found = try raw(name)
    } catch {
      if error == .noSuchFile { return nil }
      throw error
    }
    // The values of `S_IFMT` and of the types in it.
    let kind: Kind =
      switch found.mode & 0o170000 {
      case 0o100000: .regularFile
      case 0o040000: .directory
      case 0o120000: .symbolicLink
      default: .other
      }
    return Facts(kind: kind, size: Int(found.size), inode: found.inode, permissions: found.mode & 0o777)
  }

  /// Returns the names of all entries but `.` and `..`, in no particular order.
  public func names() throws(Errno) -> [String] {
    guard let list = unsafe larkspur_list_folder(descriptor.number) else { throw .current }
    // Safe: the list belongs to this call, which closes it here.
    defer { unsafe closedir(list) }
    var names: [String] = []
    // Safe: the name is copied before the next call on the list replaces it.
    while let name = unsafe larkspur_next_name(list) {
      let text = unsafe String(cString: name)
      if text != ".", text != ".." { names.append(text) }
    }
    return names
  }

  /// The identity of an entry.
  ///
  /// - Throws: `noSuchFile` if there is no such entry.
  public func identity(_ name: String) throws(Errno) -> Identity {
    var found = larkspur_identity()
    // Safe: the call reads a NUL-terminated copy of the name, and writes one structure.
    guard unsafe larkspur_identity_in_folder(descriptor.number, name, &found) == 0 else { throw .current }
    return Identity(device: found.device, number: found.number, type: found.type, born: found.born)
  }

  /// Moves an entry to another directory on the same file system.
  ///
  /// - Parameter isReplacing: Whether to replace a file of the new name. If `false`, the call throws `fileExists`; the
  ///   entry must not be a directory then.
  public func move(_ name: String, to other: OpenDirectory, as newName: String, isReplacing: Bool) throws(Errno) {
    let (from, to) = (descriptor.number, other.descriptor.number)
    // Safe: the calls read NUL-terminated copies of the names.
    let result =
      isReplacing ? unsafe renameat(from, name, to, newName) : unsafe larkspur_move_new(from, name, to, newName)
    guard result == 0 else { throw .current }
  }

  /// Exchanges an entry with one of another directory on the same file system, in one step: both names are in use all
  /// the time.
  ///
  /// - Returns: `false` if the file system or the kernel cannot exchange entries (NFS, for example).
  /// - Throws: `noSuchFile` if one of the entries does not exist.
  public func exchange(_ name: String, with otherName: String, in other: OpenDirectory) throws(Errno) -> Bool {
    // Safe: the call reads NUL-terminated copies of the names.
    if unsafe larkspur_exchange(descriptor.number, name, other.descriptor.number, otherName) == 0 { return true }
    let error = Errno.current
    if error == .invalidArgument || error == .notImplemented { return false }
    throw error
  }

  /// Removes an entry that is not a directory.
  public func removeFile(_ name: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe unlinkat(descriptor.number, name, 0) == 0 else { throw .current }
  }

  /// Removes an empty directory.
  public func removeDirectory(_ name: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe unlinkat(descriptor.number, name, AT_REMOVEDIR) == 0 else { throw .current }
  }

  /// Returns once the names of the entries have reached the disk, or at once if the file system cannot sync a directory (some
  /// network file systems refuse the call).
  public func sync() throws(Errno) {
    do throws(Errno) { try descriptor.sync() } catch .invalidArgument {}
  }

  /// Sets this directory's permissions (the twelve lowest bits of `st_mode`).
  public func setPermissions(_ mode: UInt32) throws(Errno) { try descriptor.setPermissions(mode) }

  /// Sets the time of this directory's last modification, in seconds since 1970.
  public func setModificationTime(_ seconds: Double) throws(Errno) { try descriptor.setModificationTime(seconds) }
}

extension OpenFile {
  /// Sets the time of the last modification, in seconds since 1970.
  public func setModificationTime(_ seconds: Double) throws(Errno) {
    guard larkspur_set_modification_time(number, seconds) == 0 else { throw .current }
  }

  /// Duplicates the descriptor, for a C library that takes ownership of a descriptor. The caller closes it.
  public func duplicatedDescriptor() throws(Errno) -> Int32 {
    let duplicate = larkspur_duplicate(number)
    guard duplicate >= 0 else { throw .current }
    return duplicate
  }

  /// The file's `st_mode`: type and permissions.
  public func mode() throws(Errno) -> UInt32 {
    let mode = larkspur_mode_of_descriptor(number)
    guard mode >= 0 else { throw .current }
    return UInt32(truncatingIfNeeded: mode)
  }
}
