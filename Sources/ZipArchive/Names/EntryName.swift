/// The name of an entry, as text.
package enum EntryName {
  /// Decodes the bytes of a name.
  ///
  /// With the UTF-8 flag the name is UTF-8. Without the flag it is CP437 if the archiver ran on MS-DOS (host system 0);
  /// from other hosts it is UTF-8 if it is valid as such, else CP437. SSZipArchive decides in this way, too.
  ///
  /// - Parameter host: The upper byte of "version made by" (APPNOTE.TXT 4.4.2).
  /// - Throws: `unreadableName` for invalid UTF-8 with the flag, for a NUL and for an empty name.
  package static func text(_ bytes: [UInt8], isUTF8: Bool, host: UInt8) throws(ArchiveRefusal) -> String {
    if bytes.isEmpty || bytes.contains(0) { throw ArchiveRefusal(.unreadableName, CP437.text(bytes)) }
    if !isUTF8, host == 0 { return CP437.text(bytes) }
    if let text = String(validating: bytes, as: UTF8.self) { return text }
    if isUTF8 { throw ArchiveRefusal(.unreadableName, CP437.text(bytes)) }
    return CP437.text(bytes)
  }
}

/// The path of an entry below the destination.
package struct EntryPath: Hashable, Sendable {
  /// Maximum number of components. A directory for each is open during the extraction.
  package static let depthMax = 100
  /// Maximum length of a component, in bytes of UTF-8 (`NAME_MAX` of Linux).
  static let componentMax = 255
  /// Maximum length of all components with their separators, in bytes. `PATH_MAX` of Linux is 4,096, destination
  /// included.
  static let pathMax = 3072

  /// The names of the directories and of the file. A name is not empty, `.` or `..`, and contains no slash, backslash
  /// or NUL. Empty for an entry that stands for the destination itself, such as `./`.
  package var components: [String]
  /// Whether the name ends with a separator.
  package var isDirectory: Bool

  /// Makes a path of a name. Backslashes separate as slashes do. Leaves out empty components and `.`.
  ///
  /// - Throws: `nameLeavesDestination` for an absolute name, a drive letter and `..`; `nameTooLong`.
  package init(_ name: String) throws(ArchiveRefusal) {
    // Bytes, because a slash and the combining character after it are one `Character`.
    var bytes = Array(name.utf8)
    for index in bytes.indices where bytes[index] == UInt8(ascii: "\\") { bytes[index] = UInt8(ascii: "/") }
    let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
    if bytes.contains(0) { throw ArchiveRefusal(.unreadableName, name) }
    if bytes.first == slash || Self.hasDriveLetter(bytes) { throw ArchiveRefusal(.nameLeavesDestination, name) }
    components = []
    var length = 0
    for part in bytes.split(separator: slash) where !part.elementsEqual([dot]) {
      if part.elementsEqual([dot, dot]) { throw ArchiveRefusal(.nameLeavesDestination, name) }
      length += part.count + 1
      guard part.count <= Self.componentMax, length <= Self.pathMax, components.count < Self.depthMax else {
        throw ArchiveRefusal(.nameTooLong, name)
      }
      components.append(String(decoding: part, as: UTF8.self))
    }
    isDirectory = bytes.last == slash || bytes.last == dot && (bytes.count == 1 || bytes[bytes.count - 2] == slash)
  }

  private static func hasDriveLetter(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 2, bytes[1] == UInt8(ascii: ":") else { return false }
    return UInt8(ascii: "a")...UInt8(ascii: "z") ~= bytes[0] | 0x20
  }
}
