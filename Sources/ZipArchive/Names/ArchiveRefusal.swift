/// The reason for which an archive is not extracted, or an entry not written.
package struct ArchiveRefusal: Error, Hashable, Sendable {
  package enum Reason: Hashable, Sendable {
    /// A name is not valid UTF-8 although it is marked as UTF-8, or contains a NUL.
    case unreadableName
    /// A name begins with `/` or with a drive letter, or contains `..`.
    case nameLeavesDestination
    /// A name has more than ``EntryPath/depthMax`` parts, or is too long for the kernel.
    case nameTooLong
    /// The name of a new entry has a backslash, which separates directories for the extraction.
    case nameHasBackslash
    /// Two entries have one name, names that differ in case or Unicode normalization only, or one lies below another
    /// entry that is not a directory.
    case conflictingNames
    /// A device, socket or pipe.
    case specialFile
    /// An entry has a form that no archiver makes: a directory with contents, or a link with a long target.
    case malformedEntry
    case linkLeavesDestination
    /// A symbolic link that leads to no file, in place of a file.
    case linkWithoutFile
    /// A new entry below `__MACOSX`, which extractions leave out.
    case neverExtracted
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

  /// Whether an archive of a directory is made without the entry, which has no contents that could be restored.
  package var leavesOutEntry: Bool {
    switch reason {
    case .specialFile, .linkLeavesDestination, .linkWithoutFile, .neverExtracted: true
    default: false
    }
  }
}
