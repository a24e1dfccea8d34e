import Foundation

/// Writing an archive entry by entry.
///
/// ``close()`` compresses the entries and writes the archive. Until then, a file at the path stays as it is, and the
/// added files must stay unchanged. SSZipArchive compresses each file when it is added.
///
/// The rules of the extraction apply with ``limits``: an entry that would not be extracted is not written. After a
/// function has returned `false`, ``lastError`` has the reason.
extension SSZipArchive {
  /// Starts a new archive. It replaces a file at the path in ``close()``.
  ///
  /// - Returns: `false` if the path cannot be written, or the object is open.
  @discardableResult
  public func open() -> Bool { open(isAppending: false) }

  /// Starts to add entries to the archive at the path, or a new archive if there is none.
  ///
  /// - Returns: `false` if the file is not an archive, if other bytes precede the archive, if the extraction would refuse
  ///   the archive's directory, or if the object is open.
  @discardableResult
  public func openForAppending() -> Bool { open(isAppending: true) }

  private func open(isAppending: Bool) -> Bool {
    succeeds {
      guard writer == nil else {
        throw SSZipArchiveErrorCode.invalidArguments.error("\(path) is open already.")
      }
      writer = try ArchiveWriter(path, isAppending: isAppending, Self.limits)
    }
  }

  /// Runs a call, and keeps its error.
  private func succeeds(_ call: () throws -> Void) -> Bool {
    do {
      try call()
      lastError = nil
    } catch {
      lastError = ArchiveWriter.problem(error, path)
    }
    return lastError == nil
  }

  private func opened() throws -> ArchiveWriter {
    guard let writer else { throw SSZipArchiveErrorCode.invalidArguments.error("\(path) is not open.") }
    return writer
  }

  /// Adds an empty directory.
  ///
  /// - Parameters:
  ///   - path: The directory with the attributes of the entry. If it does not exist, the entry has those of now.
  ///   - folderName: The name in the archive.
  ///   - password: Not used: there are no contents to encrypt.
  /// - Returns: `false` if the object is not open, or has an entry of that name, or if the name is refused.
  @discardableResult
  public func writeFolder(atPath path: String, withFolderName folderName: String, withPassword password: String?)
    -> Bool
  {
    succeeds { try opened().addDirectory(path, named: folderName) }
  }

  /// Adds a file under the last component of its path.
  ///
  /// - Returns: `false` if the file cannot be read, if the name is refused, or if the object is not open.
  @discardableResult
  public func writeFile(_ path: String, withPassword password: String?) -> Bool {
    writeFile(atPath: path, withFileName: nil, withPassword: password)
  }

  /// Adds a file, encrypted with AES if there is a password.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - fileName: The name in the archive, with `/` between directories. `nil` for the last component of the path.
  ///     An entry of that name is replaced.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  /// - Returns: `false` if the file cannot be read, if the name is refused, or if the object is not open.
  @discardableResult
  public func writeFile(atPath path: String, withFileName fileName: String?, withPassword password: String?) -> Bool {
    writeFile(atPath: path, withFileName: fileName, compressionLevel: -1, password: password, aes: true)
  }

  /// Adds a file.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - fileName: The name in the archive, with `/` between directories. `nil` for the last component of the path.
  ///     An entry of that name is replaced.
  ///   - compressionLevel: -1 for zlib's default, 0 for no compression, 1 to 9.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - aes: Whether to encrypt with AES of 256 bits, or else with ZipCrypto, which can be broken.
  /// - Returns: `false` if the file cannot be read or is not a regular file, if the name is refused, or if the object is
  ///   not open.
  @discardableResult
  public func writeFile(
    atPath path: String, withFileName fileName: String?, compressionLevel: Int32, password: String?, aes: Bool
  ) -> Bool {
    succeeds { try opened().addFile(path, named: fileName, Self.coding(compressionLevel, password, aes)) }
  }

  /// Adds a symbolic link. Its target is the contents of the entry.
  ///
  /// - Returns: `false` if there is no symbolic link at the path, if its target is absolute or leaves the archive's
  ///   directory, if the name is refused, or if the object is not open.
  @discardableResult
  public func writeSymlinkFile(
    atPath path: String, withFileName fileName: String?, compressionLevel: Int32, password: String?, aes: Bool
  ) -> Bool {
    succeeds { try opened().addLink(path, named: fileName, Self.coding(compressionLevel, password, aes)) }
  }

  /// Adds bytes as a file, encrypted with AES if there is a password. The object copies them.
  ///
  /// - Returns: `false` if the object is not open, or the name is missing or refused.
  @discardableResult
  public func write(_ data: Data, filename: String?, withPassword password: String?) -> Bool {
    write(data, filename: filename, compressionLevel: -1, password: password, aes: true)
  }

  /// Adds bytes as a file. The object copies them.
  ///
  /// - Parameters:
  ///   - data: The contents.
  ///   - filename: The name in the archive, with `/` between directories. An entry of that name is replaced.
  ///   - compressionLevel: -1 for zlib's default, 0 for no compression, 1 to 9.
  ///   - password: Encrypts the contents. `nil` and an empty text mean no encryption.
  ///   - aes: Whether to encrypt with AES of 256 bits, or else with ZipCrypto, which can be broken.
  /// - Returns: `false` if the object is not open, or the name is missing or refused.
  @discardableResult
  public func write(
    _ data: Data, filename: String?, compressionLevel: Int32, password: String?, aes: Bool
  ) -> Bool {
    succeeds {
      guard let filename else { throw SSZipArchiveErrorCode.invalidArguments.error("The entry has no name.") }
      try opened().add(data, named: filename, Self.coding(compressionLevel, password, aes))
    }
  }

  /// Compresses the entries, and writes the archive.
  ///
  /// - Returns: `false` if a file could not be read, if the archive could not be written or shrinks more than
  ///   ``SSZipArchiveLimits/expansionMax`` allows, if the object is not open, or if libzip refused the attributes of an
  ///   entry that it had added. A file at the path is as it was then.
  @discardableResult
  public func close() -> Bool {
    succeeds {
      let writer = try opened()
      self.writer = nil
      try writer.close(nil)
    }
  }

  static func coding(_ level: Int32, _ password: String?, _ aes: Bool) -> ArchiveWriter.Coding {
    ArchiveWriter.Coding(compressionLevel: level, password: password, usesAES: aes)
  }
}
