import Glibc
import LarkspurBytes

/// A file, a pipe or a terminal whose calls block their thread.
///
/// The descriptor is closed with the last reference, except those of the three standard streams and lent ones. Use it
/// on one thread at a time.
public final class OpenFile: Sendable {
  public static let standardInput = OpenFile(number: STDIN_FILENO, isOwned: false)
  public static let standardOutput = OpenFile(number: STDOUT_FILENO, isOwned: false)
  public static let standardError = OpenFile(number: STDERR_FILENO, isOwned: false)

  let number: Int32
  private let isOwned: Bool

  private init(number: Int32, isOwned: Bool) {
    self.number = number
    self.isOwned = isOwned
  }

  /// Uses a descriptor that stays its owner's. The owner closes it after the last use of this object.
  public convenience init(lent number: Int32) { self.init(number: number, isOwned: false) }

  /// Takes ownership of the descriptor that a call has just returned: -1 if the call failed.
  convenience init(opened number: Int32) throws(Errno) {
    guard number >= 0 else { throw .current }
    self.init(number: number, isOwned: true)
  }

  public convenience init(reading path: String) throws(Errno) {
    try self.init(opened: unsafe open(path, O_RDONLY | O_CLOEXEC))
  }

  /// Opens a regular file for reading, without blocking.
  ///
  /// - Throws: `invalidArgument` for anything but a regular file.
  public convenience init(readingRegular path: String) throws(Errno) {
    try self.init(opened: unsafe larkspur_open_regular_for_reading(path))
  }

  /// Opens an existing regular file for reading and writing, without blocking. Does not follow a symbolic link.
  ///
  /// - Throws: `invalidArgument` for anything but a regular file.
  public convenience init(updatingRegular path: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path.
    try self.init(opened: unsafe larkspur_open_regular_for_updating(path))
  }

  /// Opens an existing file for writing. A regular file is truncated first.
  public convenience init(overwriting path: String) throws(Errno) {
    try self.init(opened: unsafe open(path, O_WRONLY | O_TRUNC | O_CLOEXEC))
  }

  /// Creates a file. Fails if the path exists, even as a symbolic link, which another user may have placed.
  public convenience init(creating path: String) throws(Errno) {
    try self.init(opened: unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666))
  }

  /// Creates a file without a name, which only the current user can open, in a directory. The file goes with its last
  /// descriptor, also when the process is killed, unless it gets a name.
  ///
  /// - Throws: Any error if the file system has no such files.
  public convenience init(namelessIn directory: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path.
    try self.init(opened: unsafe larkspur_create_nameless_file(directory))
  }

  deinit {
    if isOwned { _ = close(number) }
  }

  /// Reads bytes.
  ///
  /// - Returns: One to `count` bytes, or none at the end.
  /// - Throws: `interrupted` if a caught signal asks the process to end.
  public func read(atMost count: Int) throws(Errno) -> [UInt8] {
    while true {
      var error = Errno(rawValue: 0)
      let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        // Safe: read writes at most `count` bytes, and returns their number.
        let received = unsafe Glibc.read(number, buffer.baseAddress, count)
        if received < 0 { error = .current }
        initialized = max(received, 0)
      }
      if error.rawValue == 0 { return bytes }
      if error != .interrupted || CaughtSignal.pending != nil { throw error }
    }
  }

  /// Reads up to the end.
  public func readToEnd() throws(Errno) -> [UInt8] { try readToEnd(max: .max) ?? [] }

  /// Reads up to the end.
  ///
  /// - Returns: The bytes, or `nil` if there are more than `max`.
  public func readToEnd(max: Int) throws(Errno) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count <= max {
      let piece = try read(atMost: 1 << 16)
      if piece.isEmpty { return bytes }
      bytes += piece
    }
    return nil
  }

  /// Returns the first `count` bytes of a file that has just been opened, or all of them if there are fewer.
  func readFromStart(atMost count: Int) throws(Errno) -> [UInt8] {
    let size = try status().size
    var bytes: [UInt8] = []
    while bytes.count < count {
      // Ask for one byte more than the rest of the file: a shorter read then shows the end, without another call.
      let wanted = min(count - bytes.count, max(size - bytes.count, 0) + 1)
      let piece = try read(atMost: wanted)
      if bytes.isEmpty { bytes = piece } else { bytes += piece }
      if piece.isEmpty || piece.count < wanted && bytes.count >= size { break }
    }
    return bytes
  }

  /// Writes all bytes.
  ///
  /// - Parameter deadline: A blocked call ends at it only after ``CaughtSignal/interruptCalls(at:)``.
  /// - Throws: `interrupted` if a caught signal asks the process to end; `timedOut` if the deadline has passed.
  public func write(_ bytes: Span<UInt8>, until deadline: Deadline = .never) throws(Errno) {
    var offset = 0
    while offset < bytes.count {
      // Safe: the span is lent for the call, which reads at most its length.
      let written = unsafe bytes.extracting(offset...).withUnsafeBufferPointer { rest in
        unsafe Glibc.write(number, rest.baseAddress, rest.count)
      }
      if written >= 0 {
        offset += written
        // A signal ends a write that has begun after a part of the bytes.
        if offset < bytes.count { try checkInterruption(deadline) }
        continue
      }
      switch Errno.current {
      case .interrupted: try checkInterruption(deadline)
      // Another process that shares the open file has made it non-blocking.
      case .wouldBlock:
        let result = larkspur_wait_for_event(number, Int16(POLLOUT), -1)
        guard result >= 0 || Errno.current == .interrupted else { throw .current }
        try checkInterruption(deadline)
      case let error: throw error
      }
    }
  }

  private func checkInterruption(_ deadline: Deadline) throws(Errno) {
    if CaughtSignal.pending != nil { throw .interrupted }
    if deadline != .never, deadline.nanoseconds <= larkspur_monotonic_nanoseconds() { throw .timedOut }
  }

  public func write(_ text: String) throws(Errno) {
    var text = text
    text.makeContiguousUTF8()
    try write(text.utf8Span.span)
  }

  /// Writes all bytes of another file from its position on.
  public func write(contentsOf other: OpenFile) throws(Errno) {
    while true {
      let piece = try other.read(atMost: 1 << 16)
      if piece.isEmpty { return }
      try write(piece.span)
    }
  }

  /// Gives a file without a name one, on its file system.
  ///
  /// - Throws: `fileExists` if the path is in use.
  public func link(to path: String) throws(Errno) {
    // Safe: the call reads a NUL-terminated copy of the path.
    guard unsafe larkspur_link_file(number, AT_FDCWD, path) == 0 else { throw .current }
  }

  /// Tries to take the lock of the file, which processes and threads share. Never waits. The lock ends with the file's last
  /// descriptor.
  ///
  /// - Returns: `false` if the file is locked by means of another open file.
  public func lock() throws(Errno) -> Bool {
    if flock(number, LOCK_EX | LOCK_NB) == 0 { return true }
    if Errno.current == .wouldBlock { return false }
    throw .current
  }

  /// Ends the lock. Closing the file is not enough while there are other descriptors: a process that another thread is
  /// starting has a copy until it becomes its program.
  public func unlock() { _ = flock(number, LOCK_UN) }

  /// Sets the file's permissions (the twelve lowest bits of `st_mode`).
  public func setPermissions(_ mode: UInt32) throws(Errno) {
    guard fchmod(number, mode) == 0 else { throw .current }
  }

  /// Returns an extended attribute of the file, such as `user.version`.
  ///
  /// - Returns: The value, or `nil` if there is none, if it has more than `max` bytes, or if the file system has no such
  ///   attributes.
  public func attribute(_ name: String, atMost max: Int) -> [UInt8]? {
    var count = 0
    let value = unsafe [UInt8](unsafeUninitializedCapacity: max) { buffer, initialized in
      // Safe: the call writes at most `max` bytes, and returns their number, or -1.
      count = unsafe fgetxattr(number, name, buffer.baseAddress, max)
      initialized = Swift.max(count, 0)
    }
    return count < 0 ? nil : value
  }

  /// Sets an extended attribute of the file.
  public func setAttribute(_ name: String, to value: String) throws(Errno) {
    // Safe: the call reads NUL-terminated copies of name and value, and no more bytes than the value has.
    guard unsafe fsetxattr(number, name, value, value.utf8.count, 0) == 0 else { throw .current }
  }

  /// Returns once the written bytes have reached the disk.
  public func sync() throws(Errno) {
    while fsync(number) != 0 {
      let error = Errno.current
      if error != .interrupted { throw error }
    }
  }

  /// The current size, inode and time of modification.
  public func status() throws(Errno) -> FileStatus { try status(by: LinuxKernel.shared) }

  public var isTerminal: Bool { isatty(number) == 1 }

  public var isRegularFile: Bool {
    larkspur_mode_of_descriptor(number) & Int(S_IFMT) == Int(S_IFREG)
  }

  /// The width of the terminal, or `nil` if it is unknown or the file is not a terminal.
  public var terminalColumns: Int? {
    let columns = Int(larkspur_terminal_columns(number))
    return columns > 0 ? columns : nil
  }
}
