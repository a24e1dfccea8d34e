import Foundation
import LarkspurIO

/// Writing an archive entry by entry.
///
/// ``close()`` compresses the entries and writes the archive. Until then, a file at the path stays as it is, and the
/// added files must stay unchanged. SSZipArchive compresses each file when it is added.
extension SSZipArchive {
  /// Starts a new archive. It replaces a file at the path in ``close()``.
  ///
  /// - Returns: `false` if the path cannot be written, or the object is open.
  @discardableResult
  public func open() -> Bool { open(isAppending: false) }

  /// Starts to add entries to the archive at the path, or a new archive if there is none.
  ///
  /// - Returns: `false` if the file is not an archive, or the object is open.
  @discardableResult
  public func openForAppending() -> Bool { open(isAppending: true) }

  private func open(isAppending: Bool) -> Bool {
    guard writer == nil, !path.isEmpty else { return false }
    writer = try? ZipWriter(path: path, isAppending: isAppending)
    return writer != nil
  }

  /// Adds an empty directory.
  ///
  /// - Parameters:
  ///   - path: The directory with the attributes of the entry. If it does not exist, the entry has those of now.
  ///   - folderName: The name in the archive.
  ///   - password: Not used: there are no contents to encrypt.
  /// - Returns: `false` if the object is not open, or has an entry of that name.
  @discardableResult
  public func writeFolder(atPath path: String, withFolderName folderName: String, withPassword password: String?)
    -> Bool
  {
    guard let writer, let name = Self.entryName(folderName) else { return false }
    var attributes = ZipWriter.Attributes(mode: 0o040755, modified: Date().timeIntervalSince1970)
    attributes.read(path)
    return (try? writer.addDirectory(named: name, attributes)) != nil
  }

  /// Adds a file under the last component of its path.
  ///
  /// - Returns: `false` if the file cannot be read, or the object is not open.
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
  /// - Returns: `false` if the file cannot be read, or the object is not open.
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
  /// - Returns: `false` if the file cannot be read or is not a regular file, or if the object is not open.
  @discardableResult
  public func writeFile(
    atPath path: String, withFileName fileName: String?, compressionLevel: Int32, password: String?, aes: Bool
  ) -> Bool {
    guard let writer, let name = Self.entryName(fileName ?? Self.lastComponent(path)),
      let file = try? OpenFile(readingRegular: path)
    else { return false }
    var attributes = ZipWriter.Attributes(mode: 0o100644, modified: Date().timeIntervalSince1970)
    attributes.read(path)
    if let mode = try? file.mode() { attributes.mode = mode & 0o100777 }
    attributes.setCoding(compressionLevel, password, aes)
    return (try? writer.add(file, at: path, named: name, attributes)) != nil
  }

  /// Adds a symbolic link. Its target is the contents of the entry.
  ///
  /// - Returns: `false` if there is no symbolic link at the path, or the object is not open.
  @discardableResult
  public func writeSymlinkFile(
    atPath path: String, withFileName fileName: String?, compressionLevel: Int32, password: String?, aes: Bool
  ) -> Bool {
    guard let writer, let name = Self.entryName(fileName ?? Self.lastComponent(path)),
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
    else { return false }
    var attributes = ZipWriter.Attributes(mode: 0o120777, modified: Date().timeIntervalSince1970)
    attributes.setCoding(compressionLevel, password, aes)
    return (try? writer.add(Array(target.utf8).span, named: name, attributes)) != nil
  }

  /// Adds bytes as a file, encrypted with AES if there is a password. The object copies them.
  ///
  /// - Returns: `false` if the object is not open, or the name is missing.
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
  /// - Returns: `false` if the object is not open, or the name is missing.
  @discardableResult
  public func write(
    _ data: Data, filename: String?, compressionLevel: Int32, password: String?, aes: Bool
  ) -> Bool {
    guard let writer, let name = filename.flatMap(Self.entryName) else { return false }
    var attributes = ZipWriter.Attributes(mode: 0o100644, modified: Date().timeIntervalSince1970)
    attributes.setCoding(compressionLevel, password, aes)
    return (try? writer.add(data.span, named: name, attributes)) != nil
  }

  /// Compresses the entries, and writes the archive.
  ///
  /// - Returns: `false` if a file could not be read, the archive could not be written, or the object is not open, or if
  ///   libzip refused the attributes of an entry that it had added. A file at the path is as it was then.
  @discardableResult
  public func close() -> Bool { close(nil) }

  func close(_ progressHandler: ZipProgressHandler?) -> Bool {
    guard let writer else { return false }
    self.writer = nil
    if writer.hasFailed { return false }
    let total = UInt(clamping: writer.entryCount)
    // libzip writes no archive without entries. This is the end record of an empty one (APPNOTE.TXT 4.3.16).
    if total == 0 {
      let bytes = Data([0x50, 0x4B, 5, 6] + [UInt8](repeating: 0, count: 18))
      return (try? bytes.write(to: URL(fileURLWithPath: path), options: .atomic)) != nil
    }
    var done: UInt = 0
    func report(_ count: UInt) {
      while done < count {
        done += 1
        progressHandler?(done, total)
      }
    }
    do {
      try writer.close { part in report(min(UInt(max(part, 0) * Double(total) + 1e-6), total)) }
    } catch {
      return false
    }
    report(total)
    return true
  }

  private static func lastComponent(_ path: String) -> String { URL(fileURLWithPath: path).lastPathComponent }

  /// The name of an entry without the slashes at its beginning.
  ///
  /// - Returns: `nil` for a name that would not be extracted, such as one with `..`.
  private static func entryName(_ name: String) -> String? {
    let bytes = Array(name.utf8.drop { $0 == UInt8(ascii: "/") })
    let text = String(decoding: bytes, as: UTF8.self)
    guard let path = try? EntryPath(text), !path.components.isEmpty else { return nil }
    return text
  }
}

extension ZipWriter.Attributes {
  /// Reads permissions and time of modification of a file or directory.
  fileprivate mutating func read(_ path: String) {
    guard let found = try? FileManager.default.attributesOfItem(atPath: path) else { return }
    if let permissions = found[.posixPermissions] as? NSNumber {
      mode = mode & 0o170000 | permissions.uint32Value & 0o777
    }
    if let date = found[.modificationDate] as? Date { modified = date.timeIntervalSince1970 }
  }

  fileprivate mutating func setCoding(_ level: Int32, _ password: String?, _ aes: Bool) {
    (compressionLevel, self.password, usesAES) = (level, password, aes)
  }
}
