import Foundation

/// Receives the events of an extraction. Every method has a default implementation that does nothing, in place of
/// Objective-C's optional methods.
///
/// The extraction calls all methods on the thread of its caller, in between its own work.
public protocol SSZipArchiveDelegate: NSObjectProtocol {
  /// The extraction begins. Nothing has been written.
  func zipArchiveWillUnzipArchive(atPath path: String, zipInfo: unz_global_info)

  /// All entries have been extracted.
  func zipArchiveDidUnzipArchive(atPath path: String, zipInfo: unz_global_info, unzippedPath: String)

  /// Returns whether to continue with the entry at the index, from 0. `false` cancels the extraction, as in
  /// SSZipArchive: what has been extracted is removed, and the error is `CocoaError.userCancelled`. The default is
  /// `true`.
  func zipArchiveShouldUnzipFile(
    at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info
  ) -> Bool

  /// An entry is about to be extracted, or to be left out because its file exists.
  func zipArchiveWillUnzipFile(at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info)

  /// An entry has been extracted.
  func zipArchiveDidUnzipFile(at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info)

  /// An entry has been extracted to a path. SSZipArchive calls this only if the delegate lacks the method with
  /// `fileInfo`; here, both are called.
  func zipArchiveDidUnzipFile(at fileIndex: Int, totalFiles: Int, archivePath: String, unzippedFilePath: String)

  /// The number of bytes of the archive that have been read, and their total number.
  func zipArchiveProgressEvent(_ loaded: UInt64, total: UInt64)
}

extension SSZipArchiveDelegate {
  /// Does nothing.
  public func zipArchiveWillUnzipArchive(atPath path: String, zipInfo: unz_global_info) {}
  /// Does nothing.
  public func zipArchiveDidUnzipArchive(atPath path: String, zipInfo: unz_global_info, unzippedPath: String) {}
  /// Returns `true`.
  public func zipArchiveShouldUnzipFile(
    at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info
  ) -> Bool { true }
  /// Does nothing.
  public func zipArchiveWillUnzipFile(
    at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info
  ) {}
  /// Does nothing.
  public func zipArchiveDidUnzipFile(
    at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info
  ) {}
  /// Does nothing.
  public func zipArchiveDidUnzipFile(
    at fileIndex: Int, totalFiles: Int, archivePath: String, unzippedFilePath: String
  ) {}
  /// Does nothing.
  public func zipArchiveProgressEvent(_ loaded: UInt64, total: UInt64) {}
}
