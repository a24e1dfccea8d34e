import Foundation

/// Creation of whole archives. Every form replaces a file at the archive's path, once the archive is complete. A failed
/// call leaves that file as it was.
///
/// The rules of the extraction apply with ``limits``: what would not be extracted is not written. An archive of a
/// directory is made without its sockets, pipes and devices, and without links that leave the directory. The form with
/// the parameter `delegate` reports these, and throws the reason of a failure.
///
/// Entries are compressed with deflate, and encrypted with AES unless the form has the parameter `aes`. Info-ZIP's
/// `unzip` and macOS's Archive Utility cannot read AES; others can break ZipCrypto, the alternative.
extension SSZipArchive {
  /// Receives the number of entries that are done, and the number of all entries.
  public typealias ZipProgressHandler = (UInt, UInt) -> Void

  /// Creates an archive of files, each under the last component of its path.
  ///
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(atPath path: String, withFilesAtPaths paths: [String]) -> Bool {
    createZipFile(atPath: path, withFilesAtPaths: paths, withPassword: nil)
  }

  /// Creates an archive of files, each under the last component of its path.
  ///
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withFilesAtPaths paths: [String], withPassword password: String?
  ) -> Bool {
    createZipFile(atPath: path, withFilesAtPaths: paths, withPassword: password, progressHandler: nil)
  }

  /// Creates an archive of files, each under the last component of its path.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - paths: The files.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - progressHandler: Called on this thread after each entry.
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withFilesAtPaths paths: [String], withPassword password: String?,
    progressHandler: ZipProgressHandler?
  ) -> Bool {
    succeeds {
      try createZipFile(
        atPath: path, withFilesAtPaths: paths, withPassword: password, progressHandler: progressHandler, limits: limits)
    }
  }

  /// Creates an archive of files and symbolic links, each under the last component of its path.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - paths: The files.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - keepSymlinks: Whether symbolic links become links in the archive. If `false`, what they point to does.
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withFilesAtPaths paths: [String], withPassword password: String?, keepSymlinks: Bool
  ) -> Bool {
    succeeds {
      try createZipFile(
        atPath: path, withFilesAtPaths: paths, withPassword: password, keepSymlinks: keepSymlinks, limits: limits)
    }
  }

  /// Creates an archive of files and symbolic links, each under the last component of its path, and throws the reason of a
  /// failure. SSZipArchive has no such function.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - paths: The files.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - keepSymlinks: Whether symbolic links become links in the archive. If `false`, what they point to does.
  ///   - progressHandler: Called on this thread after each entry.
  ///   - limits: The limits of the archive.
  /// - Throws: An error with ``SSZipArchiveErrorDomain``. A file at the archive's path is as it was then.
  public class func createZipFile(
    atPath path: String, withFilesAtPaths paths: [String], withPassword password: String? = nil,
    keepSymlinks: Bool = false, progressHandler: ZipProgressHandler? = nil, limits: SSZipArchiveLimits
  ) throws {
    try create(path, limits, progressHandler) { archive in
      for file in paths {
        let type = (try? FileManager.default.attributesOfItem(atPath: file))?[.type] as? FileAttributeType
        // Two files of one name cannot be extracted.
        try keepSymlinks && type == .typeSymbolicLink
          ? archive.addLink(file, named: nil, coding(-1, password, true), isReplacing: false)
          : archive.addFile(file, named: nil, coding(-1, password, true), isReplacing: false)
      }
    }
  }

  /// Creates an archive of the contents of a directory.
  ///
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(atPath path: String, withContentsOfDirectory directoryPath: String) -> Bool {
    createZipFile(atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: false)
  }

  /// Creates an archive of the contents of a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory, withPassword: nil)
  }

  /// Creates an archive of the contents of a directory.
  ///
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, withPassword password: String?
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: false, withPassword: password)
  }

  /// Creates an archive of the contents of a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    withPassword password: String?
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory,
      withPassword: password, andProgressHandler: nil)
  }

  /// Creates an archive of the contents of a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - progressHandler: Called on this thread after each entry.
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    withPassword password: String?, andProgressHandler progressHandler: ZipProgressHandler?
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory,
      compressionLevel: -1, password: password, aes: true, progressHandler: progressHandler)
  }

  /// Creates an archive of the contents of a directory. A symbolic link to a file becomes that file, and any other link
  /// a link.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - compressionLevel: -1 for zlib's default, 0 for no compression, 1 to 9.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - aes: Whether to encrypt with AES of 256 bits, or else with ZipCrypto, which can be broken.
  ///   - progressHandler: Called on this thread after each entry.
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    compressionLevel: Int32, password: String?, aes: Bool, progressHandler: ZipProgressHandler?
  ) -> Bool {
    succeeds {
      try createZipFile(
        atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory,
        compressionLevel: compressionLevel, password: password, aes: aes, progressHandler: progressHandler,
        delegate: nil)
    }
  }

  /// Creates an archive of the contents of a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - compressionLevel: -1 for zlib's default, 0 for no compression, 1 to 9.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - aes: Whether to encrypt with AES of 256 bits, or else with ZipCrypto, which can be broken.
  ///   - progressHandler: Called on this thread after each entry.
  ///   - keepSymlinks: Whether symbolic links become links in the archive. If `false`, a link to a file becomes that
  ///     file, and other links are left out.
  /// - Returns: `false` if a file cannot be read or its name is refused, or if the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    compressionLevel: Int32, password: String?, aes: Bool, progressHandler: ZipProgressHandler?, keepSymlinks: Bool
  ) -> Bool {
    succeeds {
      try createZipFile(
        atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory,
        compressionLevel: compressionLevel, password: password, aes: aes, progressHandler: progressHandler,
        keepSymlinks: keepSymlinks, delegate: nil)
    }
  }

  /// Creates an archive of the contents of a directory, reports omitted entries, and throws the reason of a failure.
  /// SSZipArchive has no such function.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - compressionLevel: -1 for zlib's default, 0 for no compression, 1 to 9.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - aes: Whether to encrypt with AES of 256 bits, or else with ZipCrypto, which can be broken.
  ///   - progressHandler: Called on this thread after each entry.
  ///   - keepSymlinks: Whether symbolic links become links in the archive. If `false`, a link to a file becomes that
  ///     file, and other links are left out. If `nil`, a link to a file becomes that file, and other links become links.
  ///   - limits: The limits of the archive.
  ///   - delegate: Called on this thread with each entry of the directory that is left out.
  /// - Throws: An error with ``SSZipArchiveErrorDomain``. A file at the archive's path is as it was then.
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool = false,
    compressionLevel: Int32 = -1, password: String? = nil, aes: Bool = true,
    progressHandler: ZipProgressHandler? = nil, keepSymlinks: Bool? = nil,
    limits: SSZipArchiveLimits = SSZipArchive.limits, delegate: (any SSZipArchiveDelegate)?
  ) throws {
    try create(path, limits, progressHandler) { archive in
      try archive.addContents(
        of: directoryPath, keepsParent: keepParentDirectory, keepsLinks: keepSymlinks,
        coding(compressionLevel, password, aes)
      ) { file, refusal in
        delegate?.zipArchiveDidLeaveOutFile(atPath: file, archivePath: path, error: refusal.error)
      }
    }
  }

  private class func create(
    _ path: String, _ limits: SSZipArchiveLimits, _ progressHandler: ZipProgressHandler?,
    _ write: (ArchiveWriter) throws -> Void
  ) throws {
    do {
      let archive = try ArchiveWriter(path, isAppending: false, limits)
      // Without `close`, nothing is written.
      try write(archive)
      try archive.close(progressHandler)
    } catch {
      throw ArchiveWriter.problem(error, path)
    }
  }

  private class func succeeds(_ call: () throws -> Void) -> Bool {
    do {
      try call()
      return true
    } catch {
      return false
    }
  }
}
