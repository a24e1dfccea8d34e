@_implementationOnly import CLarkspurLinux

/// A folder of this user's that nobody else may look into, and the files in it. Its calls block their thread.
public final class Folder: Sendable {
  /// What is known of a file without opening it. Times are seconds since 1970.
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

  /// - Parameter isCreating: It is made if it is not there; its parent has to be.
  /// - Throws: `notPermitted` if the folder is somebody else's.
  public init(path: String, isCreating: Bool) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path that lives as long as the call.
    descriptor = try OpenFile(opened: unsafe larkspur_open_private_folder(path, isCreating ? 1 : 0))
  }

  /// The regular files in it, in no order.
  public func list() throws(Errno) -> [Facts] {
    guard let list = unsafe larkspur_list_folder(descriptor.number) else { throw .current }
    // Safe: the list is ours until it is closed here.
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

  /// The first bytes of a file, or all of them if there are no more than `count`.
  public func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] {
    // Safe: the call reads a NUL-terminated copy of the name.
    let file = try OpenFile(opened: unsafe larkspur_open_in_folder(descriptor.number, name))
    let size = try file.byteCount()
    var bytes: [UInt8] = []
    while bytes.count < count {
      // One byte more than there are: a read that brings fewer than it asks for has come to the end.
      let wanted = min(count - bytes.count, max(size - bytes.count, 0) + 1)
      let piece = try file.read(atMost: wanted)
      if bytes.isEmpty { bytes = piece } else { bytes += piece }
      if piece.isEmpty || piece.count < wanted && bytes.count >= size { break }
    }
    return bytes
  }

  /// Creates a file, and fails if there is one of that name. Only this user may read it.
  public func create(_ name: String) throws(Errno) -> OpenFile {
    // Safe: as in `read`.
    try OpenFile(opened: unsafe larkspur_create_in_folder(descriptor.number, name))
  }

  /// Puts the file in the place of what has the other name, in one step.
  public func rename(_ name: String, to other: String) throws(Errno) {
    // Safe: as in `read`.
    guard unsafe renameat(descriptor.number, name, descriptor.number, other) == 0 else { throw .current }
  }

  public func remove(_ name: String) throws(Errno) {
    // Safe: as in `read`.
    guard unsafe unlinkat(descriptor.number, name, 0) == 0 else { throw .current }
  }

  /// Sets the times of a file, in seconds since 1970. Nil leaves one as it is.
  public func setTimes(_ name: String, used: Double?, changed: Double?) throws(Errno) {
    // Safe: as in `read`.
    guard unsafe larkspur_set_times_in_folder(descriptor.number, name, used ?? .nan, changed ?? .nan) == 0 else {
      throw .current
    }
  }

  /// Returns when the names of the files have reached the disk.
  public func sync() throws(Errno) { try descriptor.sync() }

  /// Takes a lock that processes and threads share, by way of a file. It is free again when the file is let go of, and
  /// when the process ends in whatever way. Nil: somebody else has it. Nobody waits: who has it may be stopped.
  public func lock(_ name: String) throws(Errno) -> OpenFile? {
    // Safe: as in `read`.
    let file = try OpenFile(opened: unsafe larkspur_open_lock_in_folder(descriptor.number, name))
    guard flock(file.number, LOCK_EX | LOCK_NB) != 0 else { return file }
    if Errno.current == .wouldBlock { return nil }
    throw .current
  }
}
