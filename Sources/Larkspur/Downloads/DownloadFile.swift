import Foundation
import LarkspurBytes
import LarkspurIO

/// The file that a download is written to: in the temporary directory, under an unpredictable name, readable by its
/// owner only. The file is removed with the last reference to this object, unless it has been given away.
final class DownloadFile: @unchecked Sendable {
  let url: URL
  let file: OpenFile
  private var isOurs: Bool

  /// Returns a URL that no file has yet.
  static func freshURL() -> URL {
    let name = "LarkspurDownload_\(UUID().uuidString).tmp"
    return FileManager.default.temporaryDirectory.appendingPathComponent(name, isDirectory: false)
  }

  /// Takes over an open file that nothing else uses.
  ///
  /// - Parameter isOurs: Whether the file is removed with this object.
  init(_ url: URL, continuing file: OpenFile, isOurs: Bool = true) {
    self.url = url
    self.file = file
    self.isOurs = isOurs
  }

  init() throws(URLError) {
    url = Self.freshURL()
    file = try Self.create(url)
    isOurs = true
  }

  /// Creates a file in place of the one at `url`. The file stays when this object goes.
  init(replacing url: URL) throws(URLError) {
    self.url = url
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

  /// Passes the file to a new owner: this object does not remove the file any more.
  func giveAway() { isOurs = false }

  private static func failure(_ code: URLError.Code, _ url: URL, _ error: Errno) -> URLError {
    .make(
      code, "\(url.path): \(error)", underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue)))
  }

  deinit { if isOurs { try? FilePaths.remove(url.path) } }
}
