import Glibc
import LarkspurBytes

/// The directory of a download's destination.
extension OpenDirectory: DownloadFiles {
  public func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] {
    try open(name, O_RDONLY, isOwn: true).readFromStart(atMost: count)
  }

  public func create(_ name: String) throws(Errno) -> any RecordFile { try makeFile(name, permissions: 0o600) }

  public func rename(_ name: String, to other: String) throws(Errno) {
    try move(name, to: self, as: other, isReplacing: true)
  }

  public func remove(_ name: String) throws(Errno) { try removeFile(name) }

  public func openPart(_ name: String, _ use: DownloadPartUse) throws(Errno) -> (any DownloadPart)? {
    if use == .read { return PartFile(try open(name, O_RDONLY, isOwn: false)) }
    let file = try open(name, use == .create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, isOwn: true)
    do throws(Errno) {
      guard try file.lock() else { return nil }
    } catch .notImplemented {
      // The file system has no locks.
    } catch .notSupported {
    }
    let part = PartFile(file)
    // An earlier holder of the lock may have renamed the file after it was opened here.
    // Safe: the call reads a NUL-terminated copy of the name.
    guard unsafe larkspur_is_named_in_folder(descriptor.number, name, file.number) != 0 else { throw .noSuchFile }
    return part
  }

  public func freeBytes() throws(Errno) -> Int {
    var facts = statvfs()
    // Safe: the call writes one structure.
    guard unsafe fstatvfs(descriptor.number, &facts) == 0 else { throw .current }
    let (count, isTooLarge) = UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize))
    return isTooLarge ? .max : Int(clamping: count)
  }

  private func open(_ name: String, _ flags: Int32, isOwn: Bool) throws(Errno) -> OpenFile {
    // Safe: the call reads a NUL-terminated copy of the name.
    try OpenFile(opened: unsafe larkspur_open_in_folder(descriptor.number, name, flags, 0o666, isOwn ? 1 : 0))
  }
}

/// A download's file on the disk.
private final class PartFile: DownloadPart {
  private let file: OpenFile

  init(_ file: OpenFile) { self.file = file }

  deinit { unlock() }

  func unlock() { file.unlock() }

  func facts() throws(Errno) -> DownloadPartFacts {
    var facts = larkspur_file_status()
    // Safe: the call writes one structure.
    guard unsafe larkspur_status_of_descriptor(file.number, &facts) == 0 else { throw .current }
    return DownloadPartFacts(size: Int(facts.size), allocated: Int(facts.allocated), inode: facts.inode)
  }

  func write(_ bytes: Span<UInt8>, at offset: Int) throws(Errno) {
    var done = 0
    while done < bytes.count {
      // Safe: the span is lent for the call, which reads at most its length.
      let count = unsafe bytes.extracting(done...).withUnsafeBufferPointer { rest in
        unsafe pwrite(file.number, rest.baseAddress, rest.count, offset + done)
      }
      if count > 0 {
        done += count
      } else if count == 0 {
        throw .inputOutput
      } else if Errno.current != .interrupted {
        throw .current
      }
    }
  }

  func read(at offset: Int, atMost count: Int) throws(Errno) -> [UInt8] {
    while true {
      var error = Errno(rawValue: 0)
      let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        // Safe: pread writes at most `count` bytes, and returns their number.
        let received = unsafe pread(file.number, buffer.baseAddress, count, offset)
        if received < 0 { error = .current }
        initialized = max(received, 0)
      }
      if error.rawValue == 0 { return bytes }
      if error != .interrupted { throw error }
    }
  }

  func reserve(_ count: Int) throws(Errno) {
    // The kernel refuses a range without a byte.
    while count > 0, fallocate(file.number, FALLOC_FL_KEEP_SIZE, 0, Int64(count)) != 0 {
      let error = Errno.current
      if error == .notSupported || error == .notImplemented { return }
      if error != .interrupted { throw error }
    }
  }

  func cut(toBytes count: Int) throws(Errno) {
    while ftruncate(file.number, count) != 0 {
      if Errno.current != .interrupted { throw .current }
    }
  }

  func setPermissions(_ mode: UInt32) throws(Errno) { try file.setPermissions(mode) }

  func sync() throws(Errno) {
    while fdatasync(file.number) != 0 {
      if Errno.current != .interrupted { throw .current }
    }
  }
}
