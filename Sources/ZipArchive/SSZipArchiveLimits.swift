/// Limits on the files that the extraction of an archive may write. SSZipArchive has no limits. Every limit is
/// inclusive: the value itself passes. New archives have the limits as well, so that an archive of this library can be
/// extracted by it.
///
/// An archive that exceeds a limit is refused with an error, and its extracted files are removed. Nested archives count
/// as a part of the archive that holds them.
public struct SSZipArchiveLimits: Hashable, Sendable {
  /// Maximum number of entries, and of files and directories in an archive. Directories count even if only the names
  /// of other entries mention them. The default is 200,000.
  public var entryCountMax = 200_000

  /// Maximum number of bytes of all files together. The default is 16 GiB.
  public var totalSizeMax: UInt64 = 16 << 30

  /// Maximum number of bytes of files for each byte of the archive. The default is 250: text shrinks to a tenth, deflate
  /// cannot do more than 1,032, and a small archive that fills a disk has overlapping or nested entries.
  public var expansionMax: UInt64 = 250

  /// Number of bytes of files that are permitted whatever the ratio is: `expansionMax` applies above it. The default is
  /// 64 MiB.
  public var bytesOutAlways: UInt64 = 64 << 20

  /// Whether names may differ in case or in Unicode normalization only, such as `Readme` and `README`. The default is
  /// `false`, because one file would replace the other on file systems that do not distinguish them.
  public var permitsSimilarNames = false

  /// Creates the default limits.
  public init() {}
}
