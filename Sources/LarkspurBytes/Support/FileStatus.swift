/// The facts by which a file's content is recognized without reading it (`fstat`).
///
/// A file that differs in any of them is a different file, even if its bytes are equal: an upload never mixes the bytes
/// of two files.
public struct FileStatus: Codable, Hashable, Sendable {
  /// Size in bytes.
  public var size: Int
  /// Time of the last modification: whole seconds since 1970.
  public var modificationSeconds: Int64
  /// Time of the last modification: nanoseconds, less than 1,000,000,000.
  public var modificationNanoseconds: UInt32
  public var inode: UInt64

  public init() { self.init(size: 0, modificationSeconds: 0, modificationNanoseconds: 0, inode: 0) }

  public init(size: Int, modificationSeconds: Int64, modificationNanoseconds: UInt32, inode: UInt64) {
    self.size = size
    self.modificationSeconds = modificationSeconds
    self.modificationNanoseconds = modificationNanoseconds
    self.inode = inode
  }
}
