/// The facts by which a file on disk is recognized when its upload continues.
///
/// A file that differs in any of them is another one, even if its bytes are equal: an upload never mixes the bytes of
/// two files.
public struct UploadFileIdentity: Codable, Hashable, Sendable {
  /// Size in bytes.
  public var size: Int
  /// Time of the last modification: whole seconds since 1970.
  public var modificationSeconds: Int64
  /// Time of the last modification: nanoseconds, less than 1,000,000,000.
  public var modificationNanoseconds: UInt32
  public var inode: UInt64

  public init(size: Int, modificationSeconds: Int64, modificationNanoseconds: UInt32, inode: UInt64) {
    self.size = size
    self.modificationSeconds = modificationSeconds
    self.modificationNanoseconds = modificationNanoseconds
    self.inode = inode
  }

  public enum Change: Hashable, Sendable {
    case size, modificationTime, inode
  }

  /// Returns the first difference from a later look at the file, or `nil` if the file is unchanged.
  public func change(to later: UploadFileIdentity) -> Change? {
    if inode != later.inode { return .inode }
    if size != later.size { return .size }
    let isSameTime =
      modificationSeconds == later.modificationSeconds && modificationNanoseconds == later.modificationNanoseconds
    return isSameTime ? nil : .modificationTime
  }
}
