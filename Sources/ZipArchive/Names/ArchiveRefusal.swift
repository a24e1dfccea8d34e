/// The reason for which an archive is not extracted.
package struct ArchiveRefusal: Error, Hashable, Sendable {
  package enum Reason: Hashable, Sendable {
    /// A name is not valid UTF-8 although it is marked as UTF-8, or contains a NUL.
    case unreadableName
    /// A name begins with `/` or with a drive letter, or contains `..`.
    case nameLeavesDestination
    /// A name has more than ``EntryPath/depthMax`` parts, or is too long for the kernel.
    case nameTooLong
    /// Two entries have one name, names that differ in case or Unicode normalization only, or one lies below another
    /// entry that is not a directory.
    case conflictingNames
    /// A device, socket or pipe.
    case specialFile
    /// An entry has a form that no archiver makes: a directory with contents, or a link with a long target.
    case malformedEntry
    case linkLeavesDestination
    case tooManyEntries
    case tooLarge
    case tooCompressed
    /// The entries have more bytes than the archive.
    case overlappingEntries
    /// The contents of an entry have another size than the archive says.
    case wrongSize
  }

  package var reason: Reason
  /// The name of the entry, or `nil` if the reason concerns the whole archive.
  package var entry: String?

  package init(_ reason: Reason, _ entry: String? = nil) {
    self.reason = reason
    self.entry = entry
  }
}
