import LarkspurBytes

/// What the file beside a download's part says: which bytes of which version the part has.
///
/// The record is the only proof that bytes are there: a byte that it does not name is fetched again. It is written after
/// the bytes that it names have reached the disk, and removed from the disk before a byte of another version is written.
public struct DownloadRecord: Hashable, Sendable {
  /// A place that the version was fetched from, and the version's name there.
  public struct Source: Hashable, Sendable {
    public var url: String
    /// The strong validator (`ResumePoint.validator`).
    public var validator: String

    public init(url: String, validator: String) {
      self.url = url
      self.validator = validator
    }
  }

  /// The sources whose version the part has bytes of. Not empty.
  public var sources: [Source]
  /// Size of the whole in bytes, or `nil` if unknown.
  public var total: Int?
  /// The content coding of the bytes, or `nil` for none.
  public var coding: String?
  /// The bytes that are on the disk.
  public var kept: ByteRanges
  /// The inode of the part. A file with another inode is not the part. A file with this inode at the destination is the
  /// complete part.
  public var inode: UInt64

  public init(sources: [Source], total: Int?, coding: String?, kept: ByteRanges, inode: UInt64) {
    self.sources = sources
    self.total = total
    self.coding = coding
    self.kept = kept
    self.inode = inode
  }

  /// Whether all bytes are there.
  public var isComplete: Bool { total.map { kept.contains(0..<$0) } ?? false }
}
