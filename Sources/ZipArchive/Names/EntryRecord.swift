/// The record of an entry in the central directory of an archive.
package struct EntryRecord: Hashable, Sendable {
  package var name: [UInt8]
  /// Whether the name is marked as UTF-8 (APPNOTE.TXT 4.4.4, bit 11).
  package var isUTF8 = false
  /// The upper byte of "version made by": 0 is MS-DOS, 3 Unix, 19 macOS.
  package var host: UInt8 = 3
  /// The external file attributes: the upper 16 bits are `st_mode` in archives from Unix.
  package var attributes: UInt32 = 0
  /// The size of the contents in bytes, as the archive says.
  package var size: UInt64 = 0
  package var compressedSize: UInt64 = 0
  package var checksum: UInt32 = 0
  package var compressionMethod: UInt16 = 0
  package var isEncrypted = false
  /// Whether the entry is encrypted with AES, which authenticates the contents.
  package var usesAES = false
  /// The time of the last modification, in seconds since 1970.
  package var modified: Double?

  package init(name: [UInt8]) { self.name = name }

  package enum Kind: Hashable, Sendable {
    case file
    case directory
    case link
  }

  /// `st_mode` without the type, or `nil` if the archive has none.
  ///
  /// Never has the bits for setuid, setgid and sticky, or those with which the group and others may write: an archive
  /// must not give more rights than a usual umask (022) does.
  package var permissions: UInt32? {
    let mode = attributes >> 16
    return mode == 0 ? nil : mode & 0o755
  }

  /// Determines the kind from the file type in `st_mode`, and from the separator at the end of the name.
  package func kind(of path: EntryPath, named name: String) throws(ArchiveRefusal) -> Kind {
    let kind: Kind
    switch attributes >> 16 & 0o170000 {
    case 0o120000: kind = .link
    case 0o040000: kind = .directory
    case 0, 0o100000: kind = path.isDirectory ? .directory : .file
    default: throw ArchiveRefusal(.specialFile, name)
    }
    let isMalformed =
      switch kind {
      case .file: false
      case .directory: size > 0
      case .link: size == 0 || size > UInt64(LinkTarget.lengthMax)
      }
    if isMalformed || path.components.isEmpty && kind != .directory { throw ArchiveRefusal(.malformedEntry, name) }
    return kind
  }
}
