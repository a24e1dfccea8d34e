import Foundation
import LarkspurIO

/// The domain of errors about archives. Their codes are those of ``SSZipArchiveErrorCode``.
public let SSZipArchiveErrorDomain = "SSZipArchiveErrorDomain"

/// The codes of errors about archives. Those from -1 to -7 are SSZipArchive's. Those from -101 on are refusals of
/// hostile archives that SSZipArchive does not detect.
public enum SSZipArchiveErrorCode: Int, Sendable {
  /// The archive does not exist, or is not an archive.
  case failedOpenZipFile = -1
  /// An entry cannot be opened: the password is missing or wrong, or the compression or encryption is not supported.
  case failedOpenFileInZip = -2
  /// The contents of an entry do not have the checksum of the archive.
  case fileInfoNotLoadable = -3
  /// The contents of an entry cannot be decompressed, or are cut off. Or a file for a new archive cannot be read.
  case fileContentNotReadable = -4
  /// A file or a new archive cannot be written, or the place of a file in the destination is taken by a directory, a file
  /// or a symbolic link.
  case failedToWriteFile = -5
  /// A path is empty or a name missing, or an object is open that should not be, or the reverse.
  case invalidArguments = -6
  /// A symbolic link points out of the destination, or, in a new archive, out of the archive's directory.
  case symlinkEscapesTargetDirectory = -7
  /// The name of an entry is absolute, has a drive letter or `..`, is not valid UTF-8, or is too long or too deep. New
  /// entries have no backslash in their names either.
  case unsafeEntryName = -101
  /// Two entries have one name, or names that differ in case or Unicode normalization only, or an entry lies below a
  /// file or link.
  case conflictingEntryNames = -102
  /// An entry is a device, a pipe or a socket, or a directory with contents. Or an entry of a directory has no place in
  /// a new archive: a symbolic link that leads to no file, or an entry below `__MACOSX`.
  case unsupportedEntryType = -103
  /// The archive has more than ``SSZipArchiveLimits/entryCountMax`` entries, or files and directories.
  case tooManyEntries = -104
  /// The files have more than ``SSZipArchiveLimits/totalSizeMax`` bytes.
  case totalSizeTooLarge = -105
  /// The files have more than ``SSZipArchiveLimits/expansionMax`` bytes for each byte of the archive.
  case expansionTooLarge = -106
  /// The entries share bytes of the archive.
  case overlappingEntries = -107
  /// The contents of an entry have another size than the archive says.
  case inconsistentSize = -108
}

extension SSZipArchiveErrorCode {
  /// Makes an error with this code.
  func error(_ message: String, underlying: (any Error)? = nil) -> NSError {
    // `print` shows the reason, and `"(null)"` without it.
    var info: [String: Any] = [NSLocalizedDescriptionKey: message, NSLocalizedFailureReasonErrorKey: message]
    if let underlying { info[NSUnderlyingErrorKey] = underlying }
    return NSError(domain: SSZipArchiveErrorDomain, code: rawValue, userInfo: info)
  }
}

extension ArchiveRefusal {
  /// The error that programs see.
  var error: NSError {
    let subject = entry.map { "The archive's entry \"\($0)\"" } ?? "The archive"
    switch reason {
    case .unreadableName: return SSZipArchiveErrorCode.unsafeEntryName.error("\(subject) has a name that is not text.")
    case .nameLeavesDestination:
      return SSZipArchiveErrorCode.unsafeEntryName.error("\(subject) has a name that leaves the destination.")
    case .nameTooLong: return SSZipArchiveErrorCode.unsafeEntryName.error("\(subject) has a name that is too long.")
    case .nameHasBackslash:
      return SSZipArchiveErrorCode.unsafeEntryName.error(
        "\(subject) has a name with a backslash, which separates directories for other systems.")
    case .conflictingNames:
      return SSZipArchiveErrorCode.conflictingEntryNames.error("\(subject) has a name that conflicts with another's.")
    case .specialFile:
      return SSZipArchiveErrorCode.unsupportedEntryType.error("\(subject) is neither file, directory nor link.")
    case .malformedEntry: return SSZipArchiveErrorCode.unsupportedEntryType.error("\(subject) is malformed.")
    case .linkLeavesDestination:
      return SSZipArchiveErrorCode.symlinkEscapesTargetDirectory.error("\(subject) is a link out of the destination.")
    case .linkWithoutFile:
      return SSZipArchiveErrorCode.unsupportedEntryType.error("\(subject) is a link that leads to no file.")
    case .neverExtracted:
      return SSZipArchiveErrorCode.unsupportedEntryType.error("\(subject) is one that extractions leave out.")
    case .tooManyEntries: return SSZipArchiveErrorCode.tooManyEntries.error("\(subject) has too many entries.")
    case .tooLarge:
      return SSZipArchiveErrorCode.totalSizeTooLarge.error("\(subject) exceeds the limit on the size of all files.")
    case .tooCompressed:
      return SSZipArchiveErrorCode.expansionTooLarge.error("\(subject) exceeds the limit on the compression ratio.")
    case .overlappingEntries: return SSZipArchiveErrorCode.overlappingEntries.error("\(subject) overlaps another.")
    case .wrongSize:
      return SSZipArchiveErrorCode.inconsistentSize.error("\(subject) does not have the size that the archive says.")
    }
  }
}

extension ZipFailure {
  /// The error that programs see.
  ///
  /// - Parameter code: The code for failures without a specific code.
  func error(_ subject: String, or code: SSZipArchiveErrorCode) -> NSError {
    switch kind {
    case .unreadableArchive: SSZipArchiveErrorCode.failedOpenZipFile.error("\(subject): \(message)")
    case .password: SSZipArchiveErrorCode.failedOpenFileInZip.error("\(subject): \(message)")
    case .checksum: SSZipArchiveErrorCode.fileInfoNotLoadable.error("\(subject): \(message)")
    case .other: code.error("\(subject): \(message)")
    }
  }
}
