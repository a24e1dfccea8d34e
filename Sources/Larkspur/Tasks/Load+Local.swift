import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// Loading of URLs that need no server.
extension Load {
  static func isLocal(_ url: URL) -> Bool {
    let scheme = url.scheme?.lowercased()
    return scheme == "file" || scheme == "data"
  }

  func loadLocally(_ url: URL) async throws(URLError) {
    let start = metrics == nil ? .distantPast : Date()
    if url.scheme?.lowercased() == "file" { try await loadFile(url) } else { try await loadData(url) }
    metrics?.collect(without: machine.request, task.response, since: start, bytes: task.countOfBytesReceived)
    enter(.complete)
  }

  private static let pieceBytes = 256 * 1024

  private func loadFile(_ url: URL) async throws(URLError) {
    let path = url.path
    let opened: Result<(OpenFile, Int), URLError> = Self.open(path)
    let (file, length) = try opened.get()
    let type = FileExtension.mediaType(of: url.pathExtension)
    try await start(
      URLResponse(url: url, mimeType: type, expectedContentLength: length, textEncodingName: nil), length: Int64(length)
    )
    while true {
      // A file is always ready to be read. Neither other work of the loop nor the caller that resumed the task should
      // wait for the whole file.
      await Task.yield()
      try await passGate()
      let piece: [UInt8]
      do throws(Errno) {
        piece = try file.read(atMost: Self.pieceBytes)
      } catch {
        throw URLError.make(.cannotOpenFile, "\(path): \(error)", url: url)
      }
      guard !piece.isEmpty else { return }
      take(piece.span)
      progressed()
      try await handOverTaken()
    }
  }

  private static func open(_ path: String) -> Result<(OpenFile, Int), URLError> {
    do throws(Errno) {
      switch try FilePaths.kind(of: path) {
      case nil: return .failure(.make(.fileDoesNotExist, "there is no file \(path)"))
      case .directory: return .failure(.make(.fileIsDirectory, "\(path) is a directory"))
      // A pipe could block for ever, and a device has no end.
      case .other: return .failure(.make(.cannotOpenFile, "\(path) is no regular file"))
      case .regularFile: break
      }
      let file = try OpenFile(readingRegular: path)
      return .success((file, try file.byteCount()))
    } catch {
      return .failure(
        .make(
          error == .accessDenied ? .noPermissionsToReadFile : .cannotOpenFile, "\(path): \(error)",
          underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue))))
    }
  }

  /// Loads a `data:` URL (RFC 2397).
  private func loadData(_ url: URL) async throws(URLError) {
    guard let data = DataURL(url.absoluteString) else {
      throw URLError.make(.badURL, "the data URL has no comma or is not Base64", url: url)
    }
    // The charset as the URL names it. RFC 2397 has a default for URLs without a charset; FoundationNetworking does not
    // report it.
    let charset = data.isTypeNamed ? data.mediaType["charset"] : nil
    try await start(
      URLResponse(
        url: url, mimeType: data.mediaType.essence, expectedContentLength: data.body.count, textEncodingName: charset),
      length: Int64(data.body.count))
    try await passGate()
    guard !data.body.isEmpty else { return }
    take(data.body.span)
    try await handOverTaken()
  }
}
