import Foundation
import LarkspurBytes
import LarkspurIO

/// The file that a download is written to: in the temporary directory, under a name that nobody can foresee, for its owner
/// alone. It is removed when nobody holds it any more, unless it is given away.
final class DownloadFile: @unchecked Sendable {
  let url: URL
  let file: OpenFile
  private var isOurs = true

  /// A name that is free.
  static func freshURL() -> URL {
    let name = "LarkspurDownload_\(UUID().uuidString).tmp"
    return FileManager.default.temporaryDirectory.appendingPathComponent(name, isDirectory: false)
  }

  /// A file that is there and open, and nobody else's.
  init(_ url: URL, continuing file: OpenFile) {
    self.url = url
    self.file = file
  }

  init() throws(URLError) {
    url = Self.freshURL()
    do throws(Errno) {
      file = try OpenFile(creating: url.path)
      try file.setPermissions(0o600)
    } catch {
      throw Self.failure(.cannotCreateFile, url, error)
    }
  }

  func write(_ bytes: Span<UInt8>) throws(URLError) {
    do throws(Errno) {
      try file.write(bytes)
    } catch {
      throw Self.failure(.cannotWriteToFile, url, error)
    }
  }

  /// In bytes.
  func count() throws(URLError) -> Int {
    do throws(Errno) {
      return try file.byteCount()
    } catch {
      throw Self.failure(.cannotOpenFile, url, error)
    }
  }

  /// Takes away what is behind so many bytes; writing goes on there.
  func cut(toBytes count: Int) throws(URLError) {
    do throws(Errno) {
      try file.cut(toBytes: count)
    } catch {
      throw Self.failure(.cannotWriteToFile, url, error)
    }
  }

  /// The file is somebody else's from now on.
  func giveAway() { isOurs = false }

  private static func failure(_ code: URLError.Code, _ url: URL, _ error: Errno) -> URLError {
    .make(
      code, "\(url.path): \(error)", underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue)))
  }

  deinit { if isOurs { try? FilePaths.remove(url.path) } }
}
