import Foundation
import LarkspurBytes
import LarkspurIO

/// An archive that is being written, entry by entry, under the rules of the extraction.
///
/// The functions throw `ArchiveRefusal`, `ZipFailure` or `NSError`. ``problem(_:_:)`` makes an `NSError` of each.
final class ArchiveWriter {
  typealias Coding = ZipWriter.Coding

  let path: String
  private let writer: ZipWriter
  private var plan: WritingPlan

  /// - Parameter isAppending: Whether to keep the entries of an archive at the path, instead of replacing it.
  init(_ path: String, isAppending: Bool, _ limits: SSZipArchiveLimits) throws {
    guard !path.isEmpty else { throw SSZipArchiveErrorCode.invalidArguments.error("The path of the archive is empty.") }
    self.path = path
    plan = WritingPlan(limits)
    do {
      if isAppending, let reader = try Self.reader(path) {
        // libzip would drop the bytes that precede the archive.
        if reader.hasPrefix { throw ZipFailure(.unreadableArchive, "other bytes precede the archive") }
        for index in 0..<reader.entryCount { try plan.addExisting(reader.record(index)) }
      }
      writer = try ZipWriter(path: path, isAppending: isAppending)
    } catch let failure as ZipFailure {
      throw failure.error(path, or: .failedOpenZipFile)
    }
  }

  /// - Returns: `nil` if there is no file.
  private static func reader(_ path: String) throws -> ZipReader? {
    let file: OpenFile
    do throws(Errno) {
      file = try OpenFile(readingRegular: path)
    } catch .noSuchFile {
      return nil
    } catch {
      throw SSZipArchiveErrorCode.failedOpenZipFile.error("\(path): \(error)", underlying: error)
    }
    return try ZipReader(file)
  }

  // MARK: - Entries

  /// Adds a file.
  ///
  /// - Parameter name: The name in the archive, or `nil` for the last component of the path.
  func addFile(_ path: String, named name: String?, _ coding: Coding, isReplacing: Bool = true) throws {
    let file: OpenFile
    var attributes: ZipWriter.Attributes
    let size: UInt64
    do throws(Errno) {
      file = try OpenFile(readingRegular: path)
      let status = try file.status()
      size = UInt64(clamping: status.size)
      attributes = ZipWriter.Attributes(
        mode: try file.mode() & 0o100777, modified: Double(status.modificationSeconds), coding: coding)
    } catch {
      let reason = error == .invalidArgument ? "not a regular file" : "\(error)"
      throw SSZipArchiveErrorCode.fileContentNotReadable.error("\(path): \(reason)", underlying: error)
    }
    let name = try accepted(name ?? Self.lastComponent(path), attributes, size, isReplacing: isReplacing)
    try writer.add(file, at: path, named: name, attributes)
  }

  /// Adds a symbolic link. Its target is the contents of the entry.
  ///
  /// - Parameter name: The name in the archive, or `nil` for the last component of the path.
  func addLink(_ path: String, named name: String?, _ coding: Coding, isReplacing: Bool = true) throws {
    let target: String
    do {
      target = try FileManager.default.destinationOfSymbolicLink(atPath: path)
    } catch {
      throw SSZipArchiveErrorCode.fileContentNotReadable.error("\(path): not a symbolic link", underlying: error)
    }
    let attributes = ZipWriter.Attributes(
      mode: 0o120777, modified: Self.attributes(path)?.modified ?? Self.now, coding: coding)
    let name = try accepted(
      name ?? Self.lastComponent(path), attributes, UInt64(target.utf8.count), linkTarget: target,
      isReplacing: isReplacing)
    try writer.add(Array(target.utf8).span, named: name, attributes)
  }

  /// Adds bytes as a file.
  func add(_ data: Data, named name: String, _ coding: Coding) throws {
    let attributes = ZipWriter.Attributes(mode: 0o100644, modified: Self.now, coding: coding)
    try writer.add(data.span, named: accepted(name, attributes, UInt64(data.count)), attributes)
  }

  /// Adds a directory without contents.
  ///
  /// - Parameter path: A directory with the attributes of the entry, if it exists.
  func addDirectory(_ path: String, named name: String) throws {
    let found = Self.attributes(path)
    let attributes = ZipWriter.Attributes(
      mode: 0o040000 | (found?.permissions ?? 0o755), modified: found?.modified ?? Self.now)
    try writer.addDirectory(named: accepted(name, attributes, 0), attributes)
  }

  /// Enters an entry in the plan.
  ///
  /// - Returns: The name to write.
  private func accepted(
    _ name: String, _ attributes: ZipWriter.Attributes, _ size: UInt64, linkTarget: String? = nil,
    isReplacing: Bool = true
  ) throws -> String {
    try ZipWriter.check(attributes.coding)
    let relative = String(decoding: name.utf8.drop { $0 == UInt8(ascii: "/") }, as: UTF8.self)
    return try plan.add(
      relative, mode: attributes.mode, size: size, linkTarget: linkTarget, isReplacing: isReplacing)
  }

  private static var now: Double { Date().timeIntervalSince1970 }
  private static func lastComponent(_ path: String) -> String { URL(fileURLWithPath: path).lastPathComponent }

  /// The permissions and the time of modification of the file at a path, without following a symbolic link.
  private static func attributes(_ path: String) -> (permissions: UInt32, modified: Double)? {
    guard let found = try? FileManager.default.attributesOfItem(atPath: path),
      let permissions = found[.posixPermissions] as? NSNumber, let date = found[.modificationDate] as? Date
    else { return nil }
    return (permissions.uint32Value & 0o777, date.timeIntervalSince1970)
  }

  // MARK: - The end

  /// Compresses the entries, and writes the archive.
  func close(_ progressHandler: SSZipArchive.ZipProgressHandler?) throws {
    if writer.hasFailed { throw ZipFailure(.other, "An entry could not be added.") }
    let total = UInt(clamping: writer.entryCount)
    // libzip writes no archive without entries. This is the end record of an empty one (APPNOTE.TXT 4.3.16).
    if total == 0 {
      let bytes = Data([0x50, 0x4B, 5, 6] + [UInt8](repeating: 0, count: 18))
      return try bytes.write(to: URL(fileURLWithPath: path), options: .atomic)
    }
    var done: UInt = 0
    func report(_ count: UInt) {
      while done < count {
        done += 1
        progressHandler?(done, total)
      }
    }
    let plan = plan
    var refusal: ArchiveRefusal?
    do {
      try writer.close { size in
        do throws(ArchiveRefusal) {
          try plan.check(archiveSize: size)
        } catch {
          refusal = error
        }
        return refusal == nil
      } progress: { part in
        report(min(UInt(max(part, 0) * Double(total) + 1e-6), total))
      }
    } catch {
      if let refusal { throw refusal }
      throw error
    }
    report(total)
  }

  /// The error that programs see.
  ///
  /// - Parameter path: The path of the archive.
  static func problem(_ error: any Error, _ path: String) -> NSError {
    switch error {
    case let refusal as ArchiveRefusal: refusal.error
    case let failure as ZipFailure: failure.error(path, or: .failedToWriteFile)
    default:
      (error as NSError).domain == SSZipArchiveErrorDomain
        ? error as NSError : SSZipArchiveErrorCode.failedToWriteFile.error("\(path): \(error)", underlying: error)
    }
  }
}
