import Foundation
import LarkspurBytes
import LarkspurIO

/// The file that a download is written to: in the temporary directory, readable by its owner only. The file is removed with
/// the last reference to this object, unless it has been given away.
///
/// The file has no name until its owner needs one, so a process that ends before that leaves nothing, in whatever way it
/// ends. Where the file system has no files without names, the file lies in the directory of partial files, and a later
/// process removes it (`PartialFiles.sweep`).
final class DownloadFile: @unchecked Sendable {
  let file: OpenFile
  /// The path of the file, or `nil` while it has none.
  private(set) var url: URL?
  private let files: PartialFiles
  private var isOurs: Bool

  /// Takes over an open file that nothing else uses.
  ///
  /// - Parameter isOurs: Whether the file is removed with this object.
  init(_ url: URL, continuing file: OpenFile, isOurs: Bool = true, in files: PartialFiles = .standard) {
    self.url = url
    self.file = file
    self.files = files
    self.isOurs = isOurs
  }

  /// Creates a file.
  ///
  /// - Parameter isNameless: Whether the file has no name at first, where the file system has such files.
  init(in files: PartialFiles = .standard, isNameless: Bool = true) throws(URLError) {
    self.files = files
    isOurs = true
    if isNameless, let file = try? OpenFile(namelessIn: files.temporary) {
      self.file = file
    } else if let (url, file) = files.makeLive() {
      (self.url, self.file) = (url, file)
    } else {
      let fresh = files.freshURL()
      url = fresh
      file = try Self.create(fresh)
    }
  }

  /// Creates a file in place of the one at `url`. The file stays when this object goes.
  init(replacing url: URL) throws(URLError) {
    self.url = url
    files = .standard
    try? FilePaths.remove(url.path)
    file = try Self.create(url)
    isOurs = false
  }

  private static func create(_ url: URL) throws(URLError) -> OpenFile {
    do throws(Errno) {
      let file = try OpenFile(creating: url.path)
      try file.setPermissions(0o600)
      return file
    } catch {
      throw failure(.cannotCreateFile, url, error)
    }
  }

  func write(_ bytes: Span<UInt8>) throws(URLError) {
    do throws(Errno) {
      try file.write(bytes)
    } catch {
      throw Self.failure(.cannotWriteToFile, url, error)
    }
  }

  /// The size of the file in bytes.
  func count() throws(URLError) -> Int {
    do throws(Errno) {
      return try file.byteCount()
    } catch {
      throw Self.failure(.cannotOpenFile, url, error)
    }
  }

  /// Truncates the file to a number of bytes. Writing continues there.
  func cut(toBytes count: Int) throws(URLError) {
    do throws(Errno) {
      try file.cut(toBytes: count)
    } catch {
      throw Self.failure(.cannotWriteToFile, url, error)
    }
  }

  /// Gives the file the name under which the program gets it.
  ///
  /// - Parameter stays: Whether the program keeps the file under this name: then no later process removes it.
  func name(stays: Bool) throws(URLError) {
    guard isOurs, stays || url == nil else { return }
    if !stays, let live = files.link(file) { return url = live }
    let fresh = files.freshURL()
    do throws(Errno) {
      if let url { try FilePaths.rename(url.path, to: fresh.path) } else { try file.link(to: fresh.path) }
    } catch {
      throw Self.failure(.cannotCreateFile, fresh, error)
    }
    url = fresh
  }

  /// Moves the file into a directory on the same file system, for another owner.
  func move(into directory: Directory, as name: String) throws(Errno) {
    if let url { try directory.moveIn(url.path, as: name) } else { try directory.link(file, as: name) }
    file.unlock()
    giveAway()
  }

  /// Passes the file to another owner: this object does not remove the file any more.
  func giveAway() { isOurs = false }

  private static func failure(_ code: URLError.Code, _ url: URL?, _ error: Errno) -> URLError {
    .make(
      code, "\(url?.path ?? "the file of the download"): \(error)",
      underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue)))
  }

  deinit { if isOurs, let url { try? FilePaths.remove(url.path) } }
}
