import Glibc

/// The reason why a directory is no place for files that only the user and root may replace.
public struct DirectoryRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  public enum Reason: Hashable, Sendable {
    /// The path does not lead to a directory without symbolic links, or is not absolute.
    case unreachable(Errno)
    /// Users other than the effective one and root may write to the directory, which has no sticky bit.
    case writableByOthers
    /// The directory belongs to a user other than the effective one and root.
    case ofAnotherUser
  }

  /// The path of the directory: the one that was asked for, or one on the way to it.
  public let directory: String
  public let reason: Reason

  public var description: String {
    switch reason {
    case .unreachable(let error): "\(directory): \(error)"
    case .writableByOthers: "\(directory): other users may write to this directory, which has no sticky bit"
    case .ofAnotherUser: "\(directory): the directory belongs to another user"
    }
  }
}

extension OpenDirectory {
  /// Opens a directory whose entries only the effective user and root can replace, so that a name in it stays what it is.
  ///
  /// The directory has to belong to one of the two. In it, and in each directory on the way, no other user may replace
  /// entries: other users must have no permission to write, or there must be a sticky bit. A group with the number of the
  /// effective user or of root is no other user: many systems give each user such a group.
  ///
  /// - Parameter path: An absolute path without symbolic links. The directories need not be readable.
  public static func guarded(at path: String) throws(DirectoryRefusal) -> OpenDirectory {
    let names = path.utf8.split(separator: UInt8(ascii: "/")).map { String($0) ?? "" }
    guard path.utf8.first == UInt8(ascii: "/"), !names.contains(".."), !names.contains("") else {
      throw DirectoryRefusal(directory: path, reason: .unreachable(.invalidArgument))
    }
    var walked = "/"
    var directory: OpenDirectory
    var access: Access
    do throws(Errno) {
      directory = try OpenDirectory(path: walked)
      access = try directory.access()
      for name in names where !access.isOpenToOthers {
        walked += walked == "/" ? name : "/\(name)"
        directory = try directory.entered(name)
        access = try directory.access()
      }
    } catch {
      throw DirectoryRefusal(directory: walked, reason: .unreachable(error))
    }
    if access.isOpenToOthers { throw DirectoryRefusal(directory: walked, reason: .writableByOthers) }
    if !access.isOfUserOrRoot { throw DirectoryRefusal(directory: walked, reason: .ofAnotherUser) }
    return directory
  }

  /// Opens a directory in this one, which need not be readable. Follows no symbolic link.
  private func entered(_ name: String) throws(Errno) -> OpenDirectory {
    // Safe: the call reads a NUL-terminated copy of the name.
    let flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    return OpenDirectory(try OpenFile(opened: unsafe openat(descriptor.number, name, flags)))
  }

  struct Access {
    let mode: UInt32
    let isOfUserOrRoot: Bool
    private let isOfOwnGroup: Bool

    init(_ found: larkspur_access) {
      let own = [0, geteuid()]
      mode = found.mode
      isOfUserOrRoot = own.contains(found.user)
      isOfOwnGroup = own.contains(found.group)
    }

    /// Whether other users may replace the entries of a directory.
    var isOpenToOthers: Bool {
      mode & 0o1000 == 0 && (mode & 0o002 != 0 || mode & 0o020 != 0 && !isOfOwnGroup)
    }
  }

  func access(_ name: String = ".") throws(Errno) -> Access { Access(try raw(name)) }

  func raw(_ name: String) throws(Errno) -> larkspur_access {
    var found = larkspur_access()
    // Safe: the call reads a NUL-terminated copy of the name, and writes one structure.
    guard unsafe larkspur_access_in_folder(descriptor.number, name, &found) == 0 else { throw .current }
    return found
  }

  /// Returns the permissions of a regular file of the effective user or of root, and `nil` for other entries.
  ///
  /// - Throws: `noSuchFile` if there is no such entry.
  public func permissions(_ name: String) throws(Errno) -> UInt32? {
    let access = try access(name)
    let isRegular = access.mode & S_IFMT == S_IFREG
    return isRegular && access.isOfUserOrRoot ? access.mode & 0o777 : nil
  }

  /// Moves a file into the directory, without a copy. Replaces an entry of the name that is not a directory, also a
  /// symbolic link.
  ///
  /// - Parameter path: The file.
  /// - Throws: `crossesFileSystems` if the file is on another file system.
  public func moveIn(_ path: String, as name: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of the names.
    guard unsafe renameat(AT_FDCWD, path, descriptor.number, name) == 0 else { throw .current }
  }
}
