import Glibc

/// A private directory of the current user, and the files in it. All calls block their thread.
public final class Directory: Sendable {
  /// Facts about a file that are known without opening it. Times are in seconds since 1970.
  public struct Facts: Hashable, Sendable {
    public var name: String
    public var size: Int
    public var usedTime: Double
    public var changedTime: Double

    public init(name: String, size: Int, usedTime: Double, changedTime: Double) {
      self.name = name
      self.size = size
      self.usedTime = usedTime
      self.changedTime = changedTime
    }
  }

  let descriptor: OpenFile

  /// Opens the directory, and removes the permissions of other users. Refuses a symbolic link.
  ///
  /// - Parameter isCreating: Whether to create a directory that does not exist. Its parent must exist.
  /// - Throws: `notPermitted` if the directory belongs to another user.
  public init(path: String, isCreating: Bool) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path that lives as long as the call.
    descriptor = try OpenFile(opened: unsafe larkspur_open_private_folder(path, isCreating ? 1 : 0))
  }

  /// Returns the regular files in the directory, in no particular order.
  public func list() throws(Errno) -> [Facts] {
    guard let list = unsafe larkspur_list_folder(descriptor.number) else { throw .current }
    // Safe: the list belongs to this call, which closes it here.
    defer { unsafe closedir(list) }
    var files: [Facts] = []
    // Safe: the name is read before the next call on the list replaces it.
    while let name = unsafe larkspur_next_name(list) {
      var facts = larkspur_file_facts()
      guard unsafe larkspur_facts_in_folder(descriptor.number, name, &facts) == 0 else { continue }
      files.append(
        Facts(
          name: unsafe String(cString: name), size: Int(facts.size), usedTime: facts.used, changedTime: facts.changed))
    }
    return files
  }

  /// Returns the first `count` bytes of a file, or all of them if there are fewer.
  public func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] {
    // Safe: the call reads a NUL-terminated copy of the name.
    let file = try OpenFile(
      opened: unsafe openat(descriptor.number, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK))
    return try file.readFromStart(atMost: count)
  }

  /// Creates a file that only the current user can read. Fails if there is a file of that name.
  public func create(_ name: String) throws(Errno) -> OpenFile {
    // Safe: the call reads a NUL-terminated copy of the name.
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    return try OpenFile(opened: unsafe openat(descriptor.number, name, flags, 0o600))
  }

  /// Renames a file, and replaces a file of the other name in one step.
  public func rename(_ name: String, to other: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of the names.
    guard unsafe renameat(descriptor.number, name, descriptor.number, other) == 0 else { throw .current }
  }

  public func remove(_ name: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe unlinkat(descriptor.number, name, 0) == 0 else { throw .current }
  }

  /// Sets the times of a file, in seconds since 1970. `nil` leaves a time as it is.
  public func setTimes(_ name: String, used: Double?, changed: Double?) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe larkspur_set_times_in_folder(descriptor.number, name, used ?? .nan, changed ?? .nan) == 0 else {
      throw .current
    }
  }

  /// Returns once the names of the files have reached the disk.
  public func sync() throws(Errno) { try descriptor.sync() }

  /// Tries to take a lock that processes and threads share, by means of a file. Never waits, because the holder may be
  /// stopped. The lock ends with the returned object, and when the process ends in any way. Its holder may remove the file
  /// before that.
  ///
  /// - Returns: The lock, or `nil` if another object holds it already.
  /// - Throws: `noSuchFile` if the directory has been removed.
  public func lock(_ name: String) throws(Errno) -> FileLock? {
    while true {
      // Safe: the call reads a NUL-terminated copy of the name.
      let file = try OpenFile(
        opened: unsafe openat(descriptor.number, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600))
      guard try file.lock() else { return nil }
      // A file that an earlier holder has removed after it was opened here locks nothing.
      if isName(name, of: file) { return FileLock(file) }
    }
  }

  /// Creates a file that only the current user can read, and takes its lock.
  ///
  /// - Returns: The file, or `nil` if another process has locked or removed it meanwhile.
  public func createLocked(_ name: String) throws(Errno) -> OpenFile? {
    let file = try create(name)
    return try file.lock() && isName(name, of: file) ? file : nil
  }

  private func isName(_ name: String, of file: OpenFile) -> Bool {
    // Safe: the call reads a NUL-terminated copy of the name.
    unsafe larkspur_is_named_in_folder(descriptor.number, name, file.number) != 0
  }
}

/// A lock that is held by means of a file. The lock ends with the last reference.
public final class FileLock: Sendable {
  private let file: OpenFile

  fileprivate init(_ file: OpenFile) { self.file = file }

  deinit { file.unlock() }
}
