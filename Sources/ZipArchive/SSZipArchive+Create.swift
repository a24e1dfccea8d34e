import Foundation

/// Creation of whole archives. Every form replaces a file at the archive's path, once the archive is complete. A failed
/// call leaves that file as it was.
///
/// Entries are compressed with deflate, and encrypted with AES unless the form has the parameter `aes`. Info-ZIP's
/// `unzip` and macOS's Archive Utility cannot read AES; others can break ZipCrypto, the alternative.
extension SSZipArchive {
  /// Receives the number of entries that are done, and the number of all entries.
  public typealias ZipProgressHandler = (UInt, UInt) -> Void

  /// Creates an archive of files, each under the last component of its path.
  ///
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(atPath path: String, withFilesAtPaths paths: [String]) -> Bool {
    createZipFile(atPath: path, withFilesAtPaths: paths, withPassword: nil)
  }

  /// Creates an archive of files, each under the last component of its path.
  ///
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
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
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withFilesAtPaths paths: [String], withPassword password: String?,
    progressHandler: ZipProgressHandler?
  ) -> Bool {
    create(path, progressHandler) { archive in
      paths.allSatisfy { archive.writeFile($0, withPassword: password) }
    }
  }

  /// Creates an archive of files and symbolic links, each under the last component of its path.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - paths: The files.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - keepSymlinks: Whether symbolic links become links in the archive. If `false`, what they point to does.
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withFilesAtPaths paths: [String], withPassword password: String?, keepSymlinks: Bool
  ) -> Bool {
    create(path, nil) { archive in
      paths.allSatisfy { file in
        keepSymlinks && type(file) == .typeSymbolicLink
          ? archive.writeSymlinkFile(
            atPath: file, withFileName: nil, compressionLevel: -1, password: password, aes: true)
          : archive.writeFile(file, withPassword: password)
      }
    }
  }

  /// Creates an archive of what is in a directory.
  ///
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(atPath path: String, withContentsOfDirectory directoryPath: String) -> Bool {
    createZipFile(atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: false)
  }

  /// Creates an archive of what is in a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory, withPassword: nil)
  }

  /// Creates an archive of what is in a directory.
  ///
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, withPassword password: String?
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: false, withPassword: password)
  }

  /// Creates an archive of what is in a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    withPassword password: String?
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory,
      withPassword: password, andProgressHandler: nil)
  }

  /// Creates an archive of what is in a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - progressHandler: Called on this thread after each entry.
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    withPassword password: String?, andProgressHandler progressHandler: ZipProgressHandler?
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory,
      compressionLevel: -1, password: password, aes: true, progressHandler: progressHandler)
  }

  /// Creates an archive of what is in a directory. What symbolic links point to becomes a file of the archive.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - compressionLevel: -1 for zlib's default, 0 for no compression, 1 to 9.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - aes: Whether to encrypt with AES of 256 bits, or else with ZipCrypto, which can be broken.
  ///   - progressHandler: Called on this thread after each entry.
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    compressionLevel: Int32, password: String?, aes: Bool, progressHandler: ZipProgressHandler?
  ) -> Bool {
    createZipFile(
      atPath: path, withContentsOfDirectory: directoryPath, keepParentDirectory: keepParentDirectory,
      compressionLevel: compressionLevel, password: password, aes: aes, progressHandler: progressHandler,
      keepSymlinks: false)
  }

  /// Creates an archive of what is in a directory.
  ///
  /// - Parameters:
  ///   - path: The archive to create.
  ///   - directoryPath: The directory.
  ///   - keepParentDirectory: Whether the names of the entries begin with the directory's own name.
  ///   - compressionLevel: -1 for zlib's default, 0 for no compression, 1 to 9.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - aes: Whether to encrypt with AES of 256 bits, or else with ZipCrypto, which can be broken.
  ///   - progressHandler: Called on this thread after each entry.
  ///   - keepSymlinks: Whether symbolic links become links in the archive. If `false`, what they point to becomes a
  ///     file of the archive, and a link to a directory fails.
  /// - Returns: `false` if a file cannot be read, or the archive cannot be written.
  @discardableResult
  public class func createZipFile(
    atPath path: String, withContentsOfDirectory directoryPath: String, keepParentDirectory: Bool,
    compressionLevel: Int32, password: String?, aes: Bool, progressHandler: ZipProgressHandler?, keepSymlinks: Bool
  ) -> Bool {
    create(path, progressHandler) { archive in
      archive.writeContents(
        of: directoryPath, keepParentDirectory: keepParentDirectory, keepSymlinks: keepSymlinks,
        compressionLevel: compressionLevel, password: password, aes: aes)
    }
  }

  private class func create(
    _ path: String, _ progressHandler: ZipProgressHandler?, _ write: (SSZipArchive) -> Bool
  ) -> Bool {
    let archive = SSZipArchive(path: path)
    // Without `close`, nothing is written.
    return archive.open() && write(archive) && archive.close(progressHandler)
  }

  /// The type of what is at a path, without following a symbolic link.
  class func type(_ path: String) -> FileAttributeType? {
    (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType
  }
}

extension SSZipArchive {
  /// Adds what is in a directory, in the order of the names.
  private func writeContents(
    of directory: String, keepParentDirectory: Bool, keepSymlinks: Bool, compressionLevel: Int32, password: String?,
    aes: Bool
  ) -> Bool {
    let root = URL(fileURLWithPath: directory, isDirectory: true).standardizedFileURL
    let own = URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath().path
    guard let names = try? FileManager.default.subpathsOfDirectory(atPath: root.path) else { return false }
    let prefix = keepParentDirectory ? root.lastPathComponent + "/" : ""
    if names.isEmpty, keepParentDirectory {
      return writeFolder(atPath: root.path, withFolderName: root.lastPathComponent, withPassword: password)
    }
    for name in names.sorted() {
      let file = root.appending(path: name)
      // An archive that is replaced is not a part of itself.
      if file.resolvingSymlinksInPath().path == own { continue }
      let type = Self.type(file.path)
      let success: Bool
      if type == .typeSymbolicLink, keepSymlinks {
        success = writeSymlinkFile(
          atPath: file.path, withFileName: prefix + name, compressionLevel: compressionLevel, password: password,
          aes: aes)
      } else if type == .typeDirectory {
        // Directories with contents need no entries of their own.
        let isEmpty = (try? FileManager.default.contentsOfDirectory(atPath: file.path))?.isEmpty ?? false
        success = !isEmpty || writeFolder(atPath: file.path, withFolderName: prefix + name, withPassword: password)
      } else {
        success = writeFile(
          atPath: file.path, withFileName: prefix + name, compressionLevel: compressionLevel, password: password,
          aes: aes)
      }
      if !success { return false }
    }
    return true
  }
}
