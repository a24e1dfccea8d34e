import Foundation

/// Receives the events of an extraction, and the entries that a new archive is made without. Every method has a default
/// implementation, in place of Objective-C's optional methods. The default does nothing.
///
/// All methods are called on the thread of the caller, in between the work.
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

  /// A new archive of a directory is made without an entry of that directory. SSZipArchive has no such method.
  ///
  /// - Parameters:
  ///   - filePath: The entry: a socket, a pipe, a device, a symbolic link that leaves the directory or that the caller
  ///     does not want, or an entry below `__MACOSX`.
  ///   - archivePath: The archive.
  ///   - error: The reason, with ``SSZipArchiveErrorDomain``.
  func zipArchiveDidLeaveOutFile(atPath filePath: String, archivePath: String, error: NSError)
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
  /// Does nothing.
  public func zipArchiveDidLeaveOutFile(atPath filePath: String, archivePath: String, error: NSError) {}
}
